import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [react()],
  // React, zod and markdown-it: a page of a demo need not split them
  build: { chunkSizeWarningLimit: 600 },
  // one copy of each, also for a linked package; those of the registry have none of their own
  resolve: {
    dedupe: ['react', 'react-dom', '@countersign/client', '@countersign/core', '@countersign/react'],
  },
  // For `vite` in development: the example server runs beside it, and refuses requests whose Host and Origin differ.
  server: { port: 5180, proxy: { '/api': { target: 'http://localhost:5173', changeOrigin: false } } },
})
