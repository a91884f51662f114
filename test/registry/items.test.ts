import { expect, test } from 'vitest'
import { items, sourceOf } from './items.js'

test('the registry has the parts of a page that asks for approvals', () => {
  expect(items.map(({ name }) => name)).toEqual([
    'approval-card',
    'approval-dialog',
    'pending-bar',
    'mandates',
  ])
})

test.each(items)(
  'the item $name has the files and the packages that its files import',
  ({ dependencies, files }) => {
    const paths = files.map(({ path }) => path)
    const imported = paths.flatMap((path) =>
      [...sourceOf(path).matchAll(/from '(.+)'/g)].map(([, name = '']) => name),
    )
    const local = imported.filter((name) => name.startsWith('./')).map((name) => `react/${name.slice(2)}.tsx`)
    expect(local.filter((path) => !paths.includes(path))).toEqual([])
    const ours = imported.filter((name) => name.startsWith('@countersign/'))
    expect(new Set(ours)).toEqual(new Set(dependencies))
  },
)
