// Packs every package as for publishing and checks each tarball with attw. test/packed.test.ts has the other checks.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ended, start } from './run.mjs'

const root = `${import.meta.dirname}/..`
/** Packages without CommonJS, because their framework or the types of their SDK have none. */
const modulesOnly = /countersign-(solid|svelte|google|mcp)-/
const folder = mkdtempSync(join(tmpdir(), 'countersign-packed-'))
let sound = true

async function run(command, ...args) {
  if ((await ended(start(command, args, { cwd: root, stdio: 'inherit' }))) !== 0) sound = false
}

try {
  await run('pnpm', '-r', '--filter', './packages/*', 'pack', '--pack-destination', folder)
  for (const tarball of readdirSync(folder).map((file) => join(folder, file))) {
    // node10 ignores `exports`, and no supported version of Node resolves that way
    await run('attw', tarball, '--profile', modulesOnly.test(tarball) ? 'esm-only' : 'node16')
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = sound ? 0 : 1
