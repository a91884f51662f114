import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { defineConfig } from '@solidjs/start/config'

// Nitro copies what the server imports. It does not see the binaries that this package loads by name.
const binaries = resolve('node_modules/@photostructure/sqlite/prebuilds')
const files = readdirSync(binaries, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.node'),
)

export default defineConfig({
  server: { externals: { traceInclude: files.map((name) => join(binaries, name)) } },
})
