// `pnpm run types`: checks all sources and tests, then the example pages with the built packages. Without `--pages`: not the pages.
import { readArguments } from './arguments.mjs'
import { writeDeclarations } from './declarations.mjs'
import { tsc } from './tsc.mjs'

const { values } = readArguments('types', { options: { pages: { type: 'boolean' } } })
// One checker takes a third less processor time than four, which the tests use meanwhile.
const { status, output } = await tsc('-p', 'tsconfig.json', '--checkers', '1')
const wrong = status === 0 && values.pages ? await writeDeclarations() : output
if (status !== 0 || wrong !== '') {
  console.error(wrong)
  process.exitCode = 1
} else if (values.pages) await import('./check-pages.mjs')
