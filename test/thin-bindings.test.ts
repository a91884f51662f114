import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

// S4.86 A binding makes the client's state visible to its framework. It contains no logic.

/** What a binding may import beside the client, and the lines that each of its files stays below. */
const bindings = {
  react: { imports: ['react'], lines: 110 },
  vue: { imports: ['vue'], lines: 110 },
  solid: { imports: ['solid-js'], lines: 130 },
  svelte: { imports: ['svelte', 'svelte/reactivity', 'svelte/store'], lines: 120 },
}

describe.each(Object.entries(bindings))('the binding of %s', (name, { imports, lines }) => {
  const folder = `${import.meta.dirname}/../packages/${name}/src`
  const sources = readdirSync(folder).map((file) => ({
    file,
    text: readFileSync(`${folder}/${file}`, 'utf8'),
  }))
  const code = sources.map(({ text }) => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')).join('\n')

  test('S4.86 imports nothing but the client and public modules of its framework', () => {
    const imported = sources.flatMap(({ text }) =>
      [...text.matchAll(/from '([^.'][^']*)'/g)].map(([, from]) => from),
    )
    expect(new Set(imported)).toEqual(new Set(['@countersign/client', ...imports]))
  })

  test('S4.86 is small', () => {
    for (const { file, text } of sources)
      expect([file, text.split('\n').length < lines]).toEqual([file, true])
  })

  test('S4.86 decides nothing about approvals: it reads no part of a call and no state', () => {
    // In Svelte's, `state` and `status` are also names of what it makes visible.
    const members =
      name === 'svelte'
        ? 'approval|approved|parts|delivery'
        : 'approval|approved|state|status|parts|delivery|queue'
    const read = code.match(
      new RegExp(`\\.(${members})\\b|\\.state\\.|'(approval|awaiting|denied|cancelled)[^']*'`),
    )
    expect(read?.[0]).toBeUndefined()
  })
})

test('the binding of Svelte needs no compiler: it uses no rune', () => {
  const folder = `${import.meta.dirname}/../packages/svelte/src`
  for (const file of readdirSync(folder))
    expect(readFileSync(`${folder}/${file}`, 'utf8').match(/\$(state|derived|effect|props)[.(<]/)).toBeNull()
})
