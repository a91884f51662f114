import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const folder = `${import.meta.dirname}/../src`
const sources = readdirSync(folder).map((name) => ({ name, text: readFileSync(`${folder}/${name}`, 'utf8') }))

test('S4.86 the binding imports nothing but the client and Vue', () => {
  const imported = sources.flatMap(({ text }) =>
    [...text.matchAll(/from '([^.'][^']*)'/g)].map(([, from]) => from),
  )
  expect(new Set(imported)).toEqual(new Set(['@countersign/client', 'vue']))
})

test('S4.86 the binding is small', () => {
  for (const { name, text } of sources) expect([name, text.split('\n').length < 110]).toEqual([name, true])
})

test('S4.86 the binding decides nothing about approvals: it reads no part of a call and no state', () => {
  const code = sources.map(({ text }) => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')).join('\n')
  const forbidden =
    /\.(approval|approved|state|status|parts|delivery|queue)\b|'(approval|awaiting|denied|cancelled)[^']*'/
  expect(code.match(forbidden)?.[0]).toBeUndefined()
})
