import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'

// Nitro copies what the server imports. It does not see the binaries that this package loads by name.
const binaries = resolve('node_modules/@photostructure/sqlite/prebuilds')
const files = readdirSync(binaries, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.node'),
)

export default defineNuxtConfig({
  compatibilityDate: '2026-11-01',
  app: { head: { title: 'Orders', htmlAttrs: { lang: 'en' } } },
  nitro: { externals: { traceInclude: files.map((name) => join(binaries, name)) } },
})
