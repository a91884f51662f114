// Breaks a copy of the client in each way of mutants.mjs and says whether the exploration notices.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { fail, readArguments } from '../../scripts/arguments.mjs'
import { bundleForNode } from '../../scripts/bundle.mjs'
import { brief } from './models.mjs'
import { mutants } from './mutants.mjs'

const root = join(import.meta.dirname, '../..')
const folder = join(root, '.verify/mutants')

const explorer = await bundleForNode(join(import.meta.dirname, 'lib/index.ts'), root)
const { explore, invariants, printFailure } = await import(pathToFileURL(explorer.file).href)
await explorer.remove()

/** A copy of core and client with the mutation in it, as one module. */
async function load(mutant, number) {
  const copy = join(folder, `${number}`)
  for (const name of ['core', 'client'])
    cpSync(join(root, 'packages', name, 'src'), join(copy, name, 'src'), { recursive: true })
  for (const edit of mutant.edits) apply(mutant, edit, copy)
  const outfile = join(copy, 'client.mjs')
  await build({
    entryPoints: [join(copy, 'client/src/index.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    nodePaths: [join(root, 'packages/core/node_modules'), join(root, 'packages/client/node_modules')],
    alias: {
      '@countersign/core/ag-ui': join(copy, 'core/src/ag-ui.ts'),
      '@countersign/core': join(copy, 'core/src/index.ts'),
    },
    logLevel: 'error',
  })
  return import(pathToFileURL(outfile).href)
}

function apply({ name }, { file, find, put, times = 1 }, copy) {
  const path = join(copy, file)
  const pieces = readFileSync(path, 'utf8').split(find)
  if (pieces.length !== times + 1)
    throw new Error(`"${name}": ${file} has ${pieces.length - 1} times, not ${times}:\n${find}`)
  writeFileSync(path, pieces.join(put))
}

// Every aborted stream makes an error, and nobody reads where it came from.
Error.stackTraceLimit = 0

const { values, positionals } = readArguments('explore:mutations', {
  options: { print: { type: 'boolean' } },
  words: 'PART OF A NAME',
})
const [only = ''] = positionals
if (only && !mutants.some(({ name }) => name.includes(only))) fail(`No mutation has "${only}" in its name.`)
rmSync(folder, { recursive: true, force: true })
let missed = 0
const unchanged = { name: 'nothing', edits: [] }
for (const [index, mutant] of [...mutants, unchanged].entries()) {
  if (!mutant.name.includes(only)) continue
  const began = performance.now()
  const client = await load(mutant, index)
  const { played, failures } = await explore({ client, models: brief })
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  const [failure] = failures
  const expected = mutant.edits.length === 0 ? !failure : failure !== undefined
  if (!expected) missed++
  const verdict = mutant.edits.length === 0 ? (failure ? 'FAILS ' : 'passes') : failure ? 'caught' : 'MISSED'
  console.log(`${verdict}  ${mutant.name}  (${played} timelines, ${seconds} s)`)
  if (!failure) continue
  const [violation] = failure.played.violations
  console.log(`        ${invariants[violation.invariant]}\n        ${violation.why}`)
  console.log(
    `        ${failure.model.name}, decisions [${failure.decisions}], ${failure.played.log.length} lines`,
  )
  if (values.print) console.log(printFailure(failure))
}
rmSync(folder, { recursive: true, force: true })
console.log(missed === 0 ? 'All caught.' : `${missed} not as expected.`)
process.exitCode = missed === 0 ? 0 : 1
