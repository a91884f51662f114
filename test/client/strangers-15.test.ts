import { type AnswerResult, approvalView } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'
import { type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// What a seventh stranger found: texts that JavaScript reads otherwise, schemas that write, answers within answers.

/** A server that asks about one call, whose arguments are this text. */
function asking(text: string, approval: object = {}) {
  return server((input: RunAgentInput): Event[] => [
    { type: 'TOOL_CALL_START', toolCallId: 'c0', toolCallName: 'act' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c0', delta: text },
    { type: 'TOOL_CALL_END', toolCallId: 'c0' },
    {
      type: 'CUSTOM',
      name: 'approval-requested',
      value: { toolCallId: 'c0', approval: { id: 'a1', options: ['deny', 'once'], ...approval } },
    },
    finish(input, ['a1', 'c0']),
  ])
}

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
  'K arguments that JavaScript reads otherwise are shown as they came, with a warning: %s, %s',
  async (text) => {
    const { connection } = asking(text, { allowEdits: true })
    const chat = open({ connection })
    await chat.client.sendMessage('go')
    const { whole, shown } = views(chat)
    expect(shown).toEqual([text, text])
    expect(whole).toMatchObject({ suspicious: true, hidden: 0, edit: { status: 'none' } })
    const edit = { id: 'a1', approved: true, input: { path: 'b' } }
    expect(await chat.client.addToolApprovalResponse(edit)).toMatchObject({ status: 'refused' })
  },
)

test.each([
  '{"n":0.1}',
  '{"n":9007199254740991,"s":"1234567890123456789 \\" 1e400"}',
  '{"n":[1e21,-0,1.50]}',
  '',
])('K arguments that JavaScript keeps are shown as before: %s', async (text) => {
  const { connection } = asking(text, { allowEdits: true })
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  expect(views(chat).whole).toMatchObject({ suspicious: false, edit: { status: 'offered' } })
})

test('K an edit goes out as it was given, whatever a schema of the page writes into what it checks', async () => {
  const { connection, resume } = asking('{"to":"bob","amount":1}', { allowEdits: ['to'] })
  const input = z.custom<object>((value) => Object.assign(value as object, { amount: 100 }))
  const { client } = open({ connection, serverTools: [{ name: 'act', input }] })
  await client.sendMessage('go')
  const edited = { to: 'eve', amount: 1 }
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true, input: edited })).toEqual({
    status: 'sent',
  })
  expect(JSON.stringify(resume())).not.toContain('100')
  expect(edited).toEqual({ to: 'eve', amount: 1 })
})

test('K a request that was answered while a schema checked another answer is not answered twice', async () => {
  const { connection, resume } = asking('{"to":"bob"}', { allowEdits: true })
  let inner: Promise<AnswerResult> | undefined
  const input = z.custom<object>(() => {
    inner = client.addToolApprovalResponse({ id: 'a1', approved: false })
    return true
  })
  const { client } = open({ connection, serverTools: [{ name: 'act', input }] })
  await client.sendMessage('go')
  const outer = client.addToolApprovalResponse({ id: 'a1', approved: true, input: { to: 'eve' } })
  expect(await outer).toMatchObject({ status: 'already-answered' })
  expect(await inner).toEqual({ status: 'sent' })
  expect(resume()[1]).toEqual([['a1', { approved: false }]])
})

test('K a schema of the page that checks asynchronously and rejects is reported, and the server decides', async () => {
  const reported = vi.fn()
  vi.stubGlobal('reportError', reported)
  const { connection } = asking('{"to":"bob"}', { allowEdits: true })
  const validate = () => Promise.reject(new Error('no network'))
  const input = { '~standard': { version: 1, vendor: 'test', validate } } as const
  const { client } = open({
    connection,
    serverTools: [{ name: 'act', input }],
  })
  await client.sendMessage('go')
  const edit = { id: 'a1', approved: true, input: { to: 'eve' } }
  expect(await client.addToolApprovalResponse(edit)).toEqual({ status: 'sent' })
  expect(reported).toHaveBeenCalledWith(new Error('no network'))
})

test('K cancel: false cancels nothing', async () => {
  const { connection, resume } = asking('{"to":"bob"}')
  const { client } = open({ connection })
  await client.sendMessage('go')
  const yes = { id: 'a1', approved: true, cancel: false }
  expect(await client.addToolApprovalResponse(yes)).toEqual({ status: 'sent' })
  expect(resume()[1]).toEqual([['a1', { approved: true }]])
})
