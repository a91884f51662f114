import { memoryLedger, previewResponse, statelessLedger } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import {
  type Asked,
  answer,
  ask,
  call,
  collect,
  input,
  refusals,
  results,
  say,
  testAgent,
} from '../support.js'
import { diff, fileTool, naming, writer, yes } from './world.js'

const context = { subject: 'ann' }

/** What a page posts to see what edited arguments would do. */
function edits({ toolCallId: id, toolName: name, input: asked, approval }: Asked, edited: unknown) {
  const given = { id, name, arguments: JSON.stringify(asked) }
  return { threadId: 'thread', approvalId: approval.id, token: approval.token, call: given, input: edited }
}

const editable = (more = {}) =>
  fileTool({ allowEdits: ['text'], input: z.looseObject({ text: z.string().max(20) }), ...more })

test('V8 approving edits without their preview is refused, and the request stays open', async () => {
  const made = editable()
  const { agent } = writer(made)
  const { history, first } = await ask(agent, {}, { context })
  const editedArgs = { text: 'mine' }
  const { proof } = await agent.previewEdits(edits(first, { text: 'yours' }), context)
  const answers = [
    answer(first, { approved: true, editedArgs }),
    yes(first, { editedArgs }),
    yes(first, { editedArgs }, { preview: diff('one', 'mine') }),
    yes(first, { editedArgs }, { preview: diff('one', 'mine'), proof }),
    yes(first, { editedArgs }, { preview: diff('one', 'mine'), proof: `${proof.split('.')[0]}.AAAA` }),
    yes(first, { editedArgs }, { proof: 7 }),
  ]
  for (const one of answers) {
    const events = await collect(agent, input(history, { resume: [one] }), { context })
    expect(refusals(events)).toMatchObject([{ code: 'approval-edit-invalid' }])
    expect(results(events)).toEqual([])
  }
  expect(made.runs).toEqual([])
})

test('V8 edits are approved with their preview, and run only if it is unchanged', async () => {
  for (const ledger of [memoryLedger(), statelessLedger({ acceptReplay: true })]) {
    const made = editable()
    const { agent } = writer(made, { approvals: { ledger } })
    const { history, first } = await ask(agent, {}, { context })
    const editedArgs = { text: 'mine' }
    const before = await agent.previewEdits(edits(first, editedArgs), context)
    expect(before.preview).toEqual(diff('one', 'mine'))
    // Nothing was settled by that, and it can be asked for again.
    const edited = await agent.previewEdits(edits(first, editedArgs), context)
    expect(edited).toEqual(before)
    const events = await collect(
      agent,
      input(naming(history, first), { resume: [yes(first, { editedArgs }, edited)] }),
      {
        context,
      },
    )
    expect(results(events)).toMatchObject([{ content: { done: true } }])
    expect(made.runs).toEqual([editedArgs])
    expect(made.approved).toEqual([diff('one', 'mine')])
  }
})

test('V8 if the preview of the edits has changed, approval is requested again for the call as the model made it', async () => {
  const made = editable()
  const { agent } = writer(made)
  const { history, first } = await ask(agent, {}, { context })
  const editedArgs = { text: 'mine' }
  const edited = await agent.previewEdits(edits(first, editedArgs), context)
  made.world.text = 'two'
  const events = await collect(agent, input(history, { resume: [yes(first, { editedArgs }, edited)] }), {
    context,
  })
  expect(made.runs).toEqual([])
  const asked = events.find((event) => event.type === 'CUSTOM')
  expect(asked).toMatchObject({
    value: { input: { text: 'new' }, approval: { preview: diff('two'), previous: diff('one') } },
  })
})

test('V8 another preview than that of the edits, shown with their proof, is refused', async () => {
  const made = editable()
  const { agent } = writer(made)
  const { history, first } = await ask(agent, {}, { context })
  const editedArgs = { text: 'mine' }
  const { proof } = await agent.previewEdits(edits(first, editedArgs), context)
  const resume = [yes(first, { editedArgs }, { preview: diff('one', 'harmless'), proof })]
  const events = await collect(agent, input(history, { resume }), { context })
  expect(refusals(events)).toMatchObject([{ code: 'approval-edit-invalid' }])
  expect(made.runs).toEqual([])
})

test('V8 a peer that returns only the proof may approve the edits', async () => {
  const made = editable()
  const { agent } = writer(made)
  const { history, first } = await ask(agent, {}, { context })
  const editedArgs = { text: 'mine' }
  const { proof } = await agent.previewEdits(edits(first, editedArgs), context)
  const one = answer(first, { approved: true, editedArgs })
  const resume = [{ ...one, metadata: { countersign: { token: first.approval.token, proof } } }]
  await collect(agent, input(history, { resume }), { context })
  expect(made.runs).toEqual([editedArgs])
})

test('V8 edits that change nothing have the preview of the request', async () => {
  const made = editable()
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  const resume = [yes(first, { editedArgs: { text: 'new' } })]
  await collect(agent, input(history, { resume }))
  expect(made.runs).toEqual([{ text: 'new' }])
})

test('V8 a tool without a preview needs none for its edits', async () => {
  const made = editable({ preview: undefined })
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  await expect(agent.previewEdits(edits(first, { text: 'mine' }))).rejects.toMatchObject({
    code: 'approval-edit-invalid',
  })
  await collect(agent, input(history, { resume: [yes(first, { editedArgs: { text: 'mine' } })] }))
  expect(made.runs).toEqual([{ text: 'mine' }])
})

test('V8 V17 previews of edits are refused to anybody else, for another call, for edits that are not allowed, and later', async () => {
  const made = editable()
  const ledger = memoryLedger()
  const { agent } = writer(made, { approvals: { ledger } })
  const { history, first } = await ask(agent, {}, { context })
  const good = edits(first, { text: 'mine' })
  const code = async (body: object, by: Record<string, unknown> | undefined = context) => {
    const request = new Request('http://localhost/preview', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const response = await previewResponse(agent, request, by && { context: by })
    const { error } = await response.json()
    return [response.status, error?.code]
  }
  expect(await code(good)).toEqual([200, undefined])
  // Without the token, the ledger knows the request, as for an answer.
  expect(await code({ ...good, token: undefined })).toEqual([200, undefined])
  const before = made.world.computed
  expect(await code(good, { subject: 'bob' })).toEqual([409, 'approval-not-yours'])
  expect(await code({ ...good, token: undefined }, { subject: 'bob' })).toEqual([409, 'approval-not-found'])
  expect(await code(good, {})).toEqual([409, 'approval-not-yours'])
  expect(await code({ ...good, threadId: 'other' })).toEqual([409, 'approval-not-yours'])
  expect(await code({ ...good, approvalId: 'other' })).toEqual([409, 'approval-not-yours'])
  expect(await code({ ...good, token: 'cs1.a.b.c' })).toEqual([409, 'approval-malformed'])
  expect(await code({ ...good, call: { ...good.call, id: 'call_2' } })).toEqual([409, 'approval-tampered'])
  expect(await code({ ...good, call: { ...good.call, name: 'other' } })).toEqual([409, 'approval-tampered'])
  expect(await code({ ...good, call: { ...good.call, arguments: '{"text":"x"}' } })).toEqual([
    409,
    'approval-tampered',
  ])
  expect(await code({ ...good, input: { text: 'mine', to: 'bob' } })).toEqual([409, 'approval-malformed'])
  expect(await code({ ...good, input: { text: 5 } })).toEqual([409, 'approval-edit-invalid'])
  expect(await code({ ...good, input: { text: 'x'.repeat(21) } })).toEqual([409, 'approval-edit-invalid'])
  for (const broken of [
    {},
    { ...good, call: undefined },
    { ...good, threadId: 7 },
    { ...good, approvalId: '' },
  ])
    expect(await code(broken)).toEqual([400, 'invalid-request'])
  expect(made.world.computed).toBe(before)
  await collect(agent, input(history, { resume: [yes(first)] }), { context })
  expect(await code(good)).toEqual([409, 'approval-conflict'])
})

test('V8 the policy is asked before a preview of edits is computed', async () => {
  const made = editable()
  const policy = ({ input: given }: { input: unknown }) =>
    JSON.stringify(given).includes('secret')
      ? ({ decision: 'block', reason: 'Not that.' } as const)
      : undefined
  const { agent } = testAgent([call(['call_1', 'write', { text: 'new' }]), say('done')], {
    tools: [made.tool],
    approvals: { policy },
  })
  const { first } = await ask(agent)
  await expect(agent.previewEdits(edits(first, { text: 'secret' }))).rejects.toMatchObject({
    code: 'approval-edit-invalid',
    message: 'Not that.',
  })
  expect(made.world.computed).toBe(1)
})

test('V8 what a preview changes in its input changes nothing, edited or not', async () => {
  const ran: unknown[] = []
  const made = editable({
    allowEdits: true,
    input: z.object({ text: z.string().transform((text) => new URL(text)) }),
    preview: ({ text }: { text: URL }) => {
      text.searchParams.set('dry', 'true')
      return { kind: 'text', text: text.href }
    },
    execute: ({ text }: { text: URL }) => void ran.push(text.href),
  })
  for (const editedArgs of [undefined, { text: 'https://example.org/b' }]) {
    const { agent } = testAgent([call(['call_1', 'write', { text: 'https://example.org/a' }]), say('done')], {
      tools: [made.tool],
    })
    const { history, first } = await ask(agent, {}, { context })
    expect(first.approval.display).toBeUndefined()
    const own = editedArgs && (await agent.previewEdits(edits(first, editedArgs), context))
    const resume = [yes(first, editedArgs && { editedArgs }, own && { ...own })]
    expect(refusals(await collect(agent, input(history, { resume }), { context }))).toEqual([])
  }
  expect(ran).toEqual(['https://example.org/a', 'https://example.org/b'])
})
