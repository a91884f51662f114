import { defineDevtools, record } from '@countersign/devtools'
import { expect, test } from 'vitest'

test('on a server the package loads, defines nothing and throws nothing', () => {
  expect('HTMLElement' in globalThis).toBe(false)
  expect(() => defineDevtools()).not.toThrow()
  expect(record).toBeTypeOf('function')
})
