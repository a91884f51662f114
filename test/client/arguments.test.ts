import { type AnswerResult, approvalView } from '@countersign/client'
import type { AnyClientTool } from '@countersign/core'
import { ask as askFor, event, gated, resolve, scriptedConnection, text } from '@countersign/testing'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'
import { ask, askBare, call, type Event, finish, type open, start, startWith, yes } from './foreign-server.js'
import { callOf, failOnUnhandledRejections, openClient } from './open-chat.js'

failOnUnhandledRejections()

// Arguments as they are shown, and as they are edited in an answer.

/** A chat that is asked about one call, whose arguments are this text; a schema of the page checks edits. */
const asking = (text: string, approval: object = {}, input?: AnyClientTool['input']) =>
  startWith({ ...(input && { serverTools: [{ name: 'act', input }] }) }, (run): Event[] => [
    { type: 'TOOL_CALL_START', toolCallId: 'c0', toolCallName: 'act' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c0', delta: text },
    { type: 'TOOL_CALL_END', toolCallId: 'c0' },
    askBare('c0', { id: 'a1', options: ['deny', 'once'], ...approval }),
    finish(run, ['a1', 'c0']),
  ])

/** An answer that changes the arguments. */
const edit = (input: unknown) => ({ id: 'a1', approved: true, input })

/** What a page shows of the one call, as one text and in fields. */
function views({ calls }: ReturnType<typeof open>) {
  const [part] = calls()
  const [whole, fields] = [part && approvalView(part), part && approvalView(part, { fields: true })]
  return { whole, shown: [whole?.arguments?.text.text, fields?.arguments?.fields[0]?.value.text] }
}

test.each([
  ["{path: '/etc/passwd', force: true}", 'what only a lenient parser reads'],
  ['{"path":"/etc/passwd",}', 'a comma at the end'],
  ['{"n":NaN}', 'NaN'],
  ['{"path":"/etc/pa', 'a text that is cut'],
  ['{"user_id":1234567890123456789}', 'a number of 19 digits'],
  ['{"n":1e400}', 'a number that JavaScript does not have'],
  ['{"n":-0.12345678901234567891}', 'a fraction of 20 digits'],
])(
  'arguments that JavaScript reads otherwise are shown as they came, with a warning: %s, %s',
  async (text) => {
    const chat = await asking(text, { allowEdits: true })
    const { whole, shown } = views(chat)
    expect(shown).toEqual([text, text])
    expect(whole).toMatchObject({ suspicious: true, hidden: 0, edit: { status: 'none' } })
    expect(await chat.client.addToolApprovalResponse(edit({ path: 'b' }))).toMatchObject({
      status: 'refused',
    })
  },
)

test.each([
  '{"n":0.1}',
  '{"n":9007199254740991,"s":"1234567890123456789 \\" 1e400"}',
  '{"n":[1e21,-0,1.50]}',
  '',
])('arguments that JavaScript keeps are shown as before: %s', async (text) => {
  const chat = await asking(text, { allowEdits: true })
  expect(views(chat).whole).toMatchObject({ suspicious: false, edit: { status: 'offered' } })
})

test('an edit is sent as it was given, whatever a schema of the page writes into what it checks', async () => {
  const input = z.custom<object>((value) => Object.assign(value as object, { amount: 100 }))
  const { client, resume } = await asking('{"to":"bob","amount":1}', { allowEdits: ['to'] }, input)
  const edited = { to: 'eve', amount: 1 }
  expect(await client.addToolApprovalResponse(edit(edited))).toEqual({ status: 'sent' })
  expect(JSON.stringify(resume())).not.toContain('100')
  expect(edited).toEqual({ to: 'eve', amount: 1 })
})

test('a request that was answered while a schema checked another answer is not answered twice', async () => {
  let inner: Promise<AnswerResult> | undefined
  const input = z.custom<object>(() => {
    inner = chat.deny('a1')
    return true
  })
  const chat = await asking('{"to":"bob"}', { allowEdits: true }, input)
  const outer = chat.client.addToolApprovalResponse(edit({ to: 'eve' }))
  expect(await outer).toMatchObject({ status: 'already-answered' })
  expect(await inner).toEqual({ status: 'sent' })
  expect(chat.resume()[1]).toEqual(['a1 no'])
})

test('a schema of the page that checks asynchronously and rejects is reported, and the server decides', async () => {
  const reported = vi.fn()
  vi.stubGlobal('reportError', reported)
  const validate = () => Promise.reject(new Error('no network'))
  const input = { '~standard': { version: 1, vendor: 'test', validate } } as const
  const { client } = await asking('{"to":"bob"}', { allowEdits: true }, input)
  expect(await client.addToolApprovalResponse(edit({ to: 'eve' }))).toEqual({ status: 'sent' })
  expect(reported).toHaveBeenCalledWith(new Error('no network'))
})

test.each([
  ['no list', true],
  ['one object', { message: 'too much' }],
  ['a list of nothing', [null]],
  ['a path that is no list', [{ message: 'too much', path: 'n' }]],
  ['no message', [{ path: ['n'] }]],
])('a schema of the page whose issues are malformed (%s) objects all the same', async (_, issues) => {
  const validate = () => ({ issues }) as never
  const input = { '~standard': { version: 1, vendor: 'test', validate } } as const
  const { client, resume } = await asking('{"n":1}', { allowEdits: true }, input)
  expect(await client.addToolApprovalResponse(edit({ n: 2 }))).toMatchObject({
    status: 'refused',
    code: 'approval-edit-invalid',
    issues: [{}],
  })
  expect(resume()).toEqual([[]])
})

test('arguments that TOOL_CALL_END replaces are the ones that are shown, and asked about', async () => {
  const chat = await start((input): Event[] => [
    ...call('c1', 1).slice(0, 2),
    { type: 'TOOL_CALL_END', toolCallId: 'c1', metadata: { countersign: { arguments: '{"n":2}' } } },
    ask('c1', 'a1', 2),
    finish(input, ['a1', 'c1']),
  ])
  expect(chat.pending()).toEqual([['a1', 'c1', { n: 2 }]])
  expect(chat.calls()[0]).toMatchObject({ arguments: '{"n":2}' })
  expect(chat.calls()[0]?.metadata).toBeUndefined()
})

test('F54 a user hears that the edit does not fit, and answers the same request again', async () => {
  const server = scriptedConnection([
    gated(1),
    [
      event({
        type: 'CUSTOM',
        name: 'approval-refused',
        value: { approvalId: 'a1', toolCallId: 'c1', code: 'approval-edit-invalid', message: 'n: at most 5' },
      }),
      askFor('a1', 'c1'),
    ],
    [resolve(), text('Done.')],
  ])
  const client = openClient({ connection: server })
  await client.sendMessage('go')
  const refused = await client.addToolApprovalResponse(yes('a1'))
  expect(refused).toEqual({ status: 'refused', code: 'approval-edit-invalid', reason: 'n: at most 5' })
  expect(client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)).toEqual(['a1'])
  expect([client.getSnapshot().status, callOf(client, 'c1').error?.message]).toEqual([
    'awaiting-approval',
    'n: at most 5',
  ])
  expect(await client.addToolApprovalResponse(yes('a1'))).toEqual({ status: 'sent' })
  expect(callOf(client, 'c1')).toMatchObject({ state: 'complete' })
  expect(callOf(client, 'c1').error).toBeUndefined()
})
