import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [svelte({ configFile: false })],
  // one copy, also where a linked package has its own
  resolve: { dedupe: ['svelte'] },
  // For `vite` in development: the example server runs beside it, and refuses requests whose Host and Origin differ.
  server: { port: 5183, proxy: { '/api': { target: 'http://localhost:5173', changeOrigin: false } } },
})
