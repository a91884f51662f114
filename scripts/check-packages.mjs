// Packs every package as for publishing, checks each tarball with attw, and publishes all of them without sending anything.
// test/packed.test.ts has the other checks.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readArguments } from './arguments.mjs'
import { pnpm } from './install.mjs'
import { capture, ended, start } from './run.mjs'

readArguments('packages')
const root = `${import.meta.dirname}/..`
/** Packages without CommonJS, because their framework or the types of their SDK have none. */
const modulesOnly = /countersign-(solid|svelte|google|mcp)-/
const folder = mkdtempSync(join(tmpdir(), 'countersign-packed-'))
const everyPackage = ['-r', '--filter', './packages/*', '--filter', '!@countersign/registry']
let sound = true

async function run(command, ...args) {
  if ((await ended(start(command, args, { cwd: root, stdio: 'inherit' }))) !== 0) sound = false
}

try {
  await run(...pnpm(...everyPackage, 'pack', '--pack-destination', folder))
  for (const tarball of readdirSync(folder).map((file) => join(folder, file))) {
    // node10 ignores `exports`, and no supported version of Node resolves that way
    await run('attw', tarball, '--profile', modulesOnly.test(tarball) ? 'esm-only' : 'node16')
  }
  const dryRun = ['publish', '--dry-run', '--no-git-checks']
  const [command, ...args] = pnpm(...everyPackage, ...dryRun)
  const { status, output } = await capture(command, args, { cwd: root })
  console.log(status === 0 ? output.match(/^\+ .*$/gm)?.join('\n') : output)
  if (status !== 0) sound = false
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = sound ? 0 : 1
