import { defineConfig } from 'tsup'
import { base } from '../../tsup.base'

// Hooks and providers run in the browser: a page of server components may then import them as they are.
export default defineConfig({ ...base, entry: ['src/index.ts'], banner: { js: "'use client'" } })
