import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [vue()],
  // one copy, also where a linked package has its own
  resolve: { dedupe: ['vue'] },
  // For `vite` in development: the example server runs beside it, and refuses requests whose Host and Origin differ.
  server: { port: 5182, proxy: { '/api': { target: 'http://localhost:5173', changeOrigin: false } } },
})
