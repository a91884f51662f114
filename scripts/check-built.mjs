// `prepack` of every package: fails if a file named in its manifest was not built. Otherwise the tarball would silently be empty.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.cwd()
const {
  name,
  exports: entries = {},
  bin = {},
  main,
  types,
} = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** Every file that a value of the manifest names, at any depth of conditions. */
function filesIn(value) {
  if (typeof value === 'string') return value.startsWith('./') || !value.startsWith('.') ? [value] : []
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(filesIn) : []
}

const offered = [entries, bin, main, types].flatMap(filesIn).filter((file) => !file.includes('*'))
const missing = [...new Set(offered)].filter((file) => !existsSync(join(folder, file)))
if (missing.length > 0) {
  console.error(
    `${name} is not built, so it is not packed: ${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing.`,
  )
  console.error('Run: pnpm run build')
  process.exitCode = 1
}
