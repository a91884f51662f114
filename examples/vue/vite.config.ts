import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [vue()],
  // one copy of each, also for a linked package; those of the registry have none of their own
  resolve: { dedupe: ['vue', '@countersign/client', '@countersign/core', '@countersign/vue'] },
  // For `vite` in development: the example server runs beside it, and refuses requests whose Host and Origin differ.
  server: { port: 5182, proxy: { '/api': { target: 'http://localhost:5173', changeOrigin: false } } },
})
