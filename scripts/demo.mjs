// The demo: builds the page of one framework and what it stands on, then starts the example server with it.
// `npm start` shows React; `npm start -- vue` (solid, svelte) the same page in another framework.
import { ended, start } from './run.mjs'

const frameworks = ['react', 'solid', 'vue', 'svelte']
const root = `${import.meta.dirname}/..`
const [framework = 'react'] = process.argv.slice(2)

if (!frameworks.includes(framework)) {
  console.error(`There is no page in "${framework}". Choose one of: ${frameworks.join(', ')}.`)
  process.exit(1)
}

async function pnpm(...args) {
  const child = start('pnpm', args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, DEMO_PAGE: framework },
  })
  const status = await ended(child)
  if (status !== 0) process.exit(status)
}

const packages = ['mcp-server', 'server', framework].flatMap((name) => [
  '--filter',
  `@countersign/example-${name}...`,
])
await pnpm(...packages, 'run', 'build')
await pnpm('--filter', '@countersign/example-server', 'start')
