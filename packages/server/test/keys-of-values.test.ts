// Arguments and keys that are no object, or no text.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApprovalCache, type Ledger, memoryLedger } from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import { afterAll, expect, test } from 'vitest'
import * as z from 'zod'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  refusals,
  requests,
  SECRET,
  say,
  testAgent,
} from './support.js'

const folder = mkdtempSync(join(tmpdir(), 'countersign-answers-'))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const context = { subject: 'ann' }

/** The two ledgers that this package has. */
const ledgers: readonly (readonly [name: string, make: (now?: () => number) => Promise<Ledger>])[] = [
  ['memoryLedger', async (now) => memoryLedger({ now })],
  ['fileLedger', (now) => fileLedger(join(folder, `${Math.random()}.sqlite`), { now })],
]

test('F19 arguments that are no object cannot be edited where edits are not allowed, nor where only some keys are', async () => {
  for (const allowEdits of [undefined, false, ['to'], []])
    for (const args of [[1, 2], 'x', 7, true, null]) {
      const any = counted('any', { needsApproval: true, input: z.any(), allowEdits })
      const { agent } = testAgent([call(['c1', 'any', JSON.stringify(args)]), say('ok')], {
        tools: [any.tool],
      })
      const { history, first } = await ask(agent, {}, { context })
      for (const editedArgs of [{}, { to: 'me' }]) {
        const resume = [answer(first, { approved: true, editedArgs })]
        const events = await collect(agent, input(history, { resume }), { context })
        expect(refusals(events), JSON.stringify([allowEdits, args, editedArgs])).toHaveLength(1)
        expect(any.runs).toEqual([])
      }
    }
})

test('F19 a scopeKey that answers no text makes no two keys equal: it is warned about and the person is asked', async () => {
  for (const [name, make] of ledgers)
    for (const answers of [
      (path: unknown) => ({ path }),
      (path: unknown) => [path],
      () => undefined,
      () => null,
      () => Number.NaN,
      () => Symbol('x'),
      async (path: unknown) => path,
    ]) {
      const warnings: string[] = []
      // what a tool in plain JavaScript may answer
      const scopeKey = ({ path }: Record<string, unknown>): never => answers(path) as never
      const write = counted('write', { needsApproval: true, scopes: ['once', 'session'], scopeKey })
      const turns = [call(['c1', 'write', { path: '/a' }]), call(['c2', 'write', { path: '/etc' }]), say('')]
      const { agent } = testAgent(turns, {
        tools: [write.tool],
        approvals: { secret: SECRET, ledger: await make() },
        warn: (message) => warnings.push(message),
      })
      const { history, first } = await ask(agent, {}, { context })
      const resume = [answer(first, { approved: true, scope: 'session' })]
      const events = await collect(agent, input(history, { resume }), { context })
      expect(
        requests(events).map(({ toolCallId }) => toolCallId),
        `${name}, ${answers}`,
      ).toEqual(['c2'])
      expect(write.runs).toEqual([{ path: '/a' }])
      expect(warnings.join()).toMatch(/write/)
    }
})

test('F19 a scopeKey may answer text, a number or a boolean, and each is a key of its own', async () => {
  for (const keys of [
    ['a', 'b'],
    [1, 2],
    [true, false],
    [0, ''],
  ]) {
    const scopeKey = ({ n }: Record<string, unknown>) => keys[Number(n)] as string
    const write = counted('write', { needsApproval: true, scopes: ['once', 'session'], scopeKey })
    const turns = [
      call(['c1', 'write', { n: 0 }]),
      call(['c2', 'write', { n: 0 }], ['c3', 'write', { n: 1 }]),
    ]
    const { agent } = testAgent(turns, { tools: [write.tool] })
    const { history, first } = await ask(agent, {}, { context })
    const resume = [answer(first, { approved: true, scope: 'session' })]
    const events = await collect(agent, input(history, { resume }), { context })
    expect(requests(events).map(({ toolCallId }) => toolCallId)).toEqual(['c3'])
  }
})

test('F19 no part of a key of a ledger is an object: the application’s own code is told so as well', async () => {
  const cache = new ApprovalCache({ ledger: memoryLedger() })
  const wrong = (path: string) => ({ name: 'write', scopeKey: { path } as never })
  await expect(cache.set('t', wrong('/a'), true)).rejects.toMatchObject({ code: 'invalid-argument' })
  await expect(cache.get('t', wrong('/etc'))).rejects.toMatchObject({ code: 'invalid-argument' })
})
