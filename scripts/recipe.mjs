// The recipes of docs/recipes.md: builds them and what they stand on, then runs the one that is named, or all. `npm run recipes -- batch`.
import { given } from './arguments.mjs'
import { ended, start } from './run.mjs'

const root = `${import.meta.dirname}/..`

async function run(command, args, stdio) {
  const status = await ended(start(command, args, { cwd: root, stdio }))
  if (status !== 0) process.exit(status)
}

await run(
  'pnpm',
  ['--silent', '--filter', '@countersign/example-recipes...', 'run', 'build'],
  ['ignore', 'ignore', 'inherit'],
)
await run('node', ['examples/recipes/dist/main.js', ...given], 'inherit')
