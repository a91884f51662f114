// `npm run newcomer [-- FRAMEWORK]`: does what docs/start.md and docs/server-rendering.md say, from an empty folder, with the packages as
// they would be published, and approves a call in a browser. Needs a build, and npm needs its registry or cache for the frameworks.
import { join } from 'node:path'
import { readArguments } from '../../scripts/arguments.mjs'
import { ended, start } from '../../scripts/run.mjs'

const frameworks = ['react', 'vue', 'svelte', 'solid']
const [framework] = readArguments('newcomer', { words: frameworks }).positionals
const root = join(import.meta.dirname, '../..')
const env = { ...process.env, NEWCOMER: framework ?? 'all', TEST_FULL: '1' }
const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', 'test/newcomer']
process.exitCode = await ended(
  start(process.execPath, args, { cwd: root, stdio: 'inherit', shell: false, env }),
)
