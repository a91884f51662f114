// Packs every package as it would be published and hands each tarball to attw. What else is checked of them stands in test/packed.test.ts.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ended, start } from './run.mjs'

const root = `${import.meta.dirname}/..`
/** Packages that offer no CommonJS, because their framework, or the types of their SDK, do not. */
const modulesOnly = /countersign-(solid|svelte|google|mcp)-/
const folder = mkdtempSync(join(tmpdir(), 'countersign-packed-'))
let sound = true

async function run(command, ...args) {
  if ((await ended(start(command, args, { cwd: root, stdio: 'inherit' }))) !== 0) sound = false
}

try {
  await run('pnpm', '-r', '--filter', './packages/*', 'pack', '--pack-destination', folder)
  for (const tarball of readdirSync(folder).map((file) => join(folder, file))) {
    // node10 knows no `exports`, and no Node that we support resolves that way
    await run('attw', tarball, '--profile', modulesOnly.test(tarball) ? 'esm-only' : 'node16')
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = sound ? 0 : 1
