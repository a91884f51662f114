import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [svelte({ configFile: false })],
  // one copy of each, also for a linked package; those of the registry have none of their own
  resolve: { dedupe: ['svelte', '@countersign/client', '@countersign/core', '@countersign/svelte'] },
  // For `vite` in development: the example server runs beside it, and refuses requests whose Host and Origin differ.
  server: { port: 5183, proxy: { '/api': { target: 'http://localhost:5173', changeOrigin: false } } },
})
