import type { InferTools } from '@countersign/core'
import { isApprovalNeeded } from '@countersign/server'
import { expect, expectTypeOf, test } from 'vitest'
import { deleteFile, type Limits, readFile, searchFiles, sendMoney } from '../src/tools.js'

test('S0.68 the three tools: always, by its arguments, and after asking a service', async () => {
  const files = new Map<string, string>()
  const needs = (tool: Parameters<typeof isApprovalNeeded>[0], input: unknown, context = {}) =>
    isApprovalNeeded(tool, { id: 'c1', arguments: JSON.stringify(input) }, { context })
  expect(await needs(deleteFile(files), { path: 'any' })).toBe(true)
  expect(await needs(readFile(files), { path: '/etc/passwd' })).toBe(true)
  expect(await needs(readFile(files), { path: 'notes.txt' })).toBe(false)

  const limits: Limits = { limitOf: async (subject) => (subject === 'ann' ? 100 : 0) }
  const send = { to: 'bob', amount: 50 }
  expect(await needs(sendMoney, send, { limits, subject: 'ann' })).toBe(false)
  expect(await needs(sendMoney, send, { limits, subject: 'eve' })).toBe(true)
  expect(await needs(sendMoney, send)).toBe(true)
})

test('S0.68 the types of inputs and outputs follow from the tools', () => {
  const tools = [deleteFile(new Map()), readFile(new Map()), searchFiles(new Map()), sendMoney] as const
  type Tools = InferTools<typeof tools>
  expectTypeOf<Tools['delete_file']>().toEqualTypeOf<{
    input: { path: string }
    output: { deleted: boolean }
  }>()
  expectTypeOf<Tools['read_file']['output']>().toEqualTypeOf<string>()
  expectTypeOf<Tools['search_files']['output']>().toEqualTypeOf<{ hits: readonly string[] }>()
  expectTypeOf<Tools['send_money']['input']>().toEqualTypeOf<{ to: string; amount: number }>()
  expect(tools.length).toBe(4)
})
