import { defineConfig } from 'tsup'
import { base } from '../../tsup.base'

export default defineConfig({
  ...base,
  entry: [
    'src/index.ts',
    'src/state-patch.ts',
    'src/compat.ts',
    'src/persistence.ts',
    'src/tabs.ts',
    'src/web-storage.ts',
    'src/indexed-db.ts',
    'src/web-socket.ts',
    'src/ai-sdk.ts',
    'src/lang-graph.ts',
    'src/response-schema.ts',
  ],
})
