import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const packages = join(import.meta.dirname, '../../packages')

test('a page without the devtools has not a byte of them', async () => {
  const { metafile } = await build({
    entryPoints: [join(packages, 'client/src/index.ts')],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    logLevel: 'silent',
    alias: {
      '@countersign/core/ag-ui': join(packages, 'core/src/ag-ui.ts'),
      '@countersign/core': join(packages, 'core/src/index.ts'),
    },
  })
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs))
  expect(inputs.length).toBeGreaterThan(20)
  expect(inputs.filter((file) => file.includes('devtools'))).toEqual([])
})
