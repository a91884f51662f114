import { defineConfig } from 'tsup'
import { base } from '../../tsup.base'

// The framework is ES modules only, so its binding is.
export default defineConfig({ ...base, format: ['esm'], entry: ['src/index.ts'] })
