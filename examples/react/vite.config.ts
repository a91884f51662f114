import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [react()],
  // one copy, also where a linked package has its own
  resolve: { dedupe: ['react', 'react-dom'] },
  // For `vite` in development: the example server runs beside it, and refuses requests whose Host and Origin differ.
  server: { port: 5180, proxy: { '/api': { target: 'http://localhost:5173', changeOrigin: false } } },
})
