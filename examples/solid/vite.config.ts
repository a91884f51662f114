import { defineConfig } from 'vite'
import solid from 'vite-plugin-solid'

export default defineConfig({
  plugins: [solid()],
  // one copy of each, also for a linked package; those of the registry have none of their own
  resolve: { dedupe: ['solid-js', '@countersign/client', '@countersign/core', '@countersign/solid'] },
  // For `vite` in development: the example server runs beside it, and refuses requests whose Host and Origin differ.
  server: { port: 5181, proxy: { '/api': { target: 'http://localhost:5173', changeOrigin: false } } },
})
