import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const packages = join(import.meta.dirname, '../../packages')

/** What a page gets that imports these names of the client, or of an entry beside it. */
async function bundle(names: string, entry = 'index'): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: `export { ${names} } from './${entry}.ts'`, resolveDir: join(packages, 'client/src') },
    bundle: true,
    format: 'esm',
    write: false,
    treeShaking: true,
    nodePaths: [join(packages, 'core/node_modules')],
    alias: {
      '@countersign/core/ag-ui': join(packages, 'core/src/ag-ui.ts'),
      '@countersign/core': join(packages, 'core/src/index.ts'),
    },
    logLevel: 'error',
  })
  return outputFiles[0]?.text ?? ''
}

/** A text that nothing else in the client says, of each export that not every page needs. */
const marks = {
  nextStep: 'Check before you ask for it again.',
  approvalView: 'Always (This Session)',
  approvalQueue: 'choice.dismissed.has',
}

test.each(Object.entries(marks))('%s is in no bundle that does not ask for it', async (name, mark) => {
  expect(await bundle('ChatClient, fetchServerSentEvents')).not.toContain(mark)
  expect(await bundle(name)).toContain(mark)
})

test('the check of answers by a JSON Schema is in no bundle that does not ask for it', async () => {
  const mark = 'is none of the choices'
  expect(await bundle('ChatClient, fetchServerSentEvents')).not.toContain(mark)
  expect(await bundle('checkResponse', 'response-schema')).toContain(mark)
})
