import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { items, registryFolder, sourceOf } from './items.js'

test('the registry has the parts of a page that asks for approvals', () => {
  expect(items.map(({ name }) => name)).toEqual([
    'approval-card',
    'approval-dialog',
    'pending-bar',
    'mandates',
    'tool-card',
    'question',
    'chat-parts',
  ])
})

const filesFor = (framework: string) => readdirSync(join(registryFolder, framework))

/** The modules that a file imports. */
const importsOf = (path: string) => [...sourceOf(path).matchAll(/from '(.+)'/g)].map(([, name = '']) => name)

test.each(items)(
  'the item $name has the files and the packages that its files import',
  ({ dependencies, files }) => {
    const paths = files.map(({ path }) => path)
    const imported = paths.flatMap(importsOf)
    const local = imported.filter((name) => name.startsWith('./')).map((name) => `react/${name.slice(2)}`)
    const has = (name: string) => paths.includes(`${name}.tsx`) || paths.includes(`${name}.ts`)
    expect(local.filter((name) => !has(name))).toEqual([])
    const ours = imported.filter((name) => name.startsWith('@countersign/'))
    expect(new Set(ours.map((name) => name.split('/', 2).join('/')))).toEqual(new Set(dependencies))
  },
)

test('every React file is in an item, and every item brings the rules of base.css', () => {
  const paths = new Set(items.flatMap(({ files }) => files.map(({ path }) => path)))
  expect([...paths].toSorted()).toEqual(filesFor('react').map((file) => `react/${file}`))
  const rules = sourceOf('base.css')
    .replaceAll(/\/\*.*?\*\//gs, '')
    .trim()
  for (const { css } of items)
    expect(
      Object.entries(css)
        .map(([selector, declarations]) => {
          const lines = Object.entries(declarations).map(([name, value]) => `  ${name}: ${value};`)
          return `${selector.replaceAll(', ', ',\n')} {\n${lines.join('\n')}\n}`
        })
        .join('\n\n'),
    ).toBe(rules)
})

test.each(['react', 'solid', 'vue', 'svelte'])(
  'the files for %s import only their framework, our packages and one another',
  (framework) => {
    const known = /^(?:react|solid-js|vue|svelte(?:\/reactivity)?)$/
    const others = filesFor(framework)
      .flatMap((file) => importsOf(`${framework}/${file}`))
      .filter((name) => !name.startsWith('./') && !known.test(name))
    const packages = [...new Set(others.map((name) => name.split('/', 2).join('/')))].toSorted()
    const all = ['@countersign/client', '@countersign/core', `@countersign/${framework}`]
    expect(packages).toEqual(all)
  },
)

test.each(['react/queue.tsx', 'solid/Queue.tsx', 'svelte/Queue.svelte', 'vue/Queue.vue'])(
  'in %s the second click of a double click does not take back the message that moves up',
  (path) => {
    expect(sourceOf(path)).toMatch(/detail < 2 && (?:chat\.)?cancelQueued\(/)
  },
)
