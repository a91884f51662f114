// Runs `npm test` and similar scripts: `bootstrap.mjs SCRIPT [ARGUMENTS]`. It needs only Node and npm: it installs the
// workspace with the pinned pnpm, then runs `pnpm run SCRIPT`. npm's environment is passed on, including registry and proxy.
import './requirements.mjs'

const { install, pnpm } = await import('./install.mjs')
const { runGroup, since } = await import('./run.mjs')

const began = performance.now()
const { done, output, problem } = await install()
if (problem !== undefined) {
  console.error(`${output}\n${problem}`)
  process.exit(1)
}
if (done) console.log(`ok      install  ${since(began)}`)

const [command, ...args] = pnpm('--silent', 'run', ...process.argv.slice(2))
process.exitCode = await runGroup(command, args, { cwd: new URL('..', import.meta.url) })
