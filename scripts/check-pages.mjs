// Type checks of the example pages, each with the checker of its framework.
import { existsSync } from 'node:fs'
import { ended, start } from './run.mjs'

const root = `${import.meta.dirname}/..`
const checks = [
  ['page', 'tsc', '-p', 'tsconfig.json'],
  ['react', 'tsc', '-p', 'tsconfig.json'],
  ['solid', 'tsc', '-p', 'tsconfig.json'],
  ['vue', 'vue-tsc', '-p', 'tsconfig.json'],
  ['svelte', 'svelte-check', '--tsconfig', 'tsconfig.json', '--fail-on-warnings'],
]

for (const [page, ...command] of checks) {
  const cwd = `${root}/examples/${page}`
  if (!existsSync(`${cwd}/src`)) continue
  const status = await ended(start('pnpm', ['exec', ...command], { cwd, stdio: 'inherit' }))
  if (status !== 0) process.exitCode = 1
}
