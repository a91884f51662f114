import { defineConfig } from 'tsup'
import { base } from '../../tsup.base'

// The types of its SDK resolve as ES modules only, so this package is one.
export default defineConfig({ ...base, format: ['esm'], entry: ['src/index.ts'] })
