// Builds the recipes of docs/recipes.md and the packages they use, then runs the named one, or all: `npm run recipes -- batch`.
import { join } from 'node:path'
import { given, readArguments } from './arguments.mjs'
import { buildPackages, buildProgram } from './build-packages.mjs'
import { root } from './packages.mjs'
import { ended, start } from './run.mjs'

async function run(command, args, stdio) {
  const status = await ended(start(command, args, { cwd: root, stdio }))
  if (status !== 0) process.exit(status)
}

readArguments('recipes', { words: 'RECIPE' })
await buildPackages()
await buildProgram(join(root, 'examples/recipes'))
await run('node', ['examples/recipes/dist/main.js', ...given], 'inherit')
