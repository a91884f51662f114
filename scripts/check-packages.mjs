// Packs every package as it would be published and hands each tarball to publint; with `--types` to attw, which is slow, instead.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { ended, start } from './run.mjs'

const root = `${import.meta.dirname}/..`
/** Packages that offer no CommonJS, because their framework, or the types of their SDK, do not. */
const modulesOnly = /countersign-(solid|svelte|google|mcp)-/
const folder = mkdtempSync(join(tmpdir(), 'countersign-packed-'))
let sound = true
const types = process.argv.includes('--types')

async function run(command, ...args) {
  if ((await ended(start(command, args, { cwd: root, stdio: 'inherit' }))) !== 0) sound = false
}

async function lint(tarball) {
  const { buffer, byteOffset, byteLength } = readFileSync(tarball)
  const packed = { tarball: buffer.slice(byteOffset, byteOffset + byteLength) }
  const { messages, pkg } = await publint({ pack: packed, strict: true })
  for (const message of messages) {
    if (message.type !== 'suggestion') sound = false
    console.log(`publint, ${pkg.name}: ${message.type}: ${formatMessage(message, pkg)}`)
  }
}

try {
  await run('pnpm', '-r', '--filter', './packages/*', 'pack', '--pack-destination', folder)
  for (const tarball of readdirSync(folder).map((file) => join(folder, file))) {
    if (!types) await lint(tarball)
    // node10 knows no `exports`, and no Node that we support resolves that way
    else await run('attw', tarball, '--profile', modulesOnly.test(tarball) ? 'esm-only' : 'node16')
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = sound ? 0 : 1
