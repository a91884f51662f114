import { defineConfig } from 'vite'
import solid from 'vite-plugin-solid'

export default defineConfig({
  plugins: [solid()],
  // one copy, also where a linked package has its own
  resolve: { dedupe: ['solid-js'] },
  // For `vite` in development: the example server runs beside it, and refuses requests whose Host and Origin differ.
  server: { port: 5181, proxy: { '/api': { target: 'http://localhost:5173', changeOrigin: false } } },
})
