import { defineConfig } from 'tsup'
import { base, inlinedInCjs } from '../../tsup.base'

export default defineConfig({
  ...base,
  ...inlinedInCjs('canonicalize'),
  entry: ['src/index.ts', 'src/node.ts', 'src/ledger-kit.ts', 'src/model-kit.ts', 'src/ai-sdk.ts'],
})
