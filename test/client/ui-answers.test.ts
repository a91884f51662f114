import { applyDraft, fieldsOf, giveAnswer, readAnswer } from '@countersign/client/ui'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { call, finish, open, server } from './foreign-server.js'

const asks = () =>
  server((input) => [
    ...call('c1', 1),
    {
      type: 'CUSTOM',
      name: 'approval-requested',
      value: { toolCallId: 'c1', approval: { id: 'a1', options: ['deny', 'once'], allowEdits: true } },
    },
    finish(input, ['a1', 'c1']),
  ])

test('an answer that is refused before it is sent has a message for the user: the request is still open, and its card says nothing', async () => {
  const { connection, requests } = asks()
  const act = { name: 'act', description: 'Acts.', input: z.object({ n: z.number().max(5, 'At most 5.') }) }
  // the focus has nowhere to go
  vi.stubGlobal('document', { getElementById: () => null })
  const { client, pending } = open({ connection, serverTools: [act] })
  await client.sendMessage('go')
  const [part] = client.getSnapshot().pendingApprovals
  if (part === undefined) return expect.fail('nothing is asked')
  const edited = (n: number) => giveAnswer(client, part, { approved: true, input: { n } })
  expect(await edited(9)).toBe('n: At most 5.')
  expect(await edited(Number.POSITIVE_INFINITY)).toContain('no JSON form')
  expect([pending().length, requests.length]).toEqual([1, 1])
  expect(await edited(4)).toBeUndefined()
})

test.each(['12345678901234567890', '0.12345678901234567890', '1e999', '{"id":9007199254740993}'])(
  'an edited argument that JavaScript would round is refused in the form: %s',
  (typed) => {
    const original = typed.startsWith('{') ? { id: 1 } : 1
    const edited = applyDraft(fieldsOf({ n: original }, true), { n: typed })
    expect(edited).toEqual({
      ok: false,
      errors: new Map([['n', 'This has a number with too many digits.']]),
    })
  },
)

test.each([
  [{ type: 'number' }, '9007199254740993', 'This number is too large.'],
  [{}, '9007199254740993', 'This has a number with too many digits.'],
  [{}, '[1e999]', 'This has a number with too many digits.'],
])(
  'an answer to a question of %j that JavaScript would round is refused in the form: %s',
  (schema, typed, fault) => {
    const question = { id: 'q1', reason: 'input_required', responseSchema: schema }
    expect(readAnswer(question, { 0: typed })).toEqual({ ok: false, faults: new Map([[0, fault]]) })
  },
)
