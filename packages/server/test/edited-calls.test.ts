import { clientTool, type Message } from '@countersign/core'
import { toProviderText } from '@countersign/server/model-kit'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { answer, ask, call, collect, counted, fold, input, say, testAgent, user } from './support.js'

const stored = (messages: readonly Message[]): Message[] => JSON.parse(JSON.stringify(messages))

/** What the model reads of the first result in each of its requests. */
function textsOf({ requests }: ReturnType<typeof testAgent>['model']) {
  return requests.flatMap(({ messages }) => {
    const part = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : [...content]))
    const result = part.find((part) => part.type === 'tool-result')
    return result?.type === 'tool-result' ? [toProviderText(result.outcome)] : []
  })
}

test('a model learns that its call was edited and what it became, now and in later requests', async () => {
  const send = counted('send', { needsApproval: true, allowEdits: true, execute: ({ n }) => `sent ${n}` })
  const { agent, model } = testAgent([call(['c1', 'send', { n: 1 }]), say('ok'), say('ok')], {
    tools: [send.tool],
  })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true, editedArgs: { n: 7 } })]
  const after = fold(history, await collect(agent, input(history, { resume })))
  await collect(agent, input([...stored(after), user('and now?')]))
  const told = 'The user changed the arguments of this call before approving it, to {"n":7}. Result: sent 7'
  expect(textsOf(model)).toEqual([told, told])
})

test('a call that is approved as it is, or with edits that change nothing, has only its result', async () => {
  const send = counted('send', { needsApproval: true, allowEdits: true, execute: ({ n }) => `sent ${n}` })
  for (const edits of [{}, { editedArgs: { n: 1 } }]) {
    const { agent, model } = testAgent([call(['c1', 'send', { n: 1 }]), say('ok')], { tools: [send.tool] })
    const { history, first } = await ask(agent)
    await collect(agent, input(history, { resume: [answer(first, { approved: true, ...edits })] }))
    expect(textsOf(model)).toEqual(['sent 1'])
  }
})

test('a model learns what a call of a client tool was edited to', async () => {
  const show = clientTool({
    name: 'show',
    description: 'Shows a number.',
    input: z.object({ n: z.number() }),
    needsApproval: true,
    allowEdits: true,
    execute: ({ n }) => n,
  })
  const { agent, model } = testAgent([call(['c1', 'show', { n: 1 }]), say('ok')], { tools: [show] })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true, editedArgs: { n: 7 } })]
  const events = await collect(agent, input(history, { resume }))
  const ready = events.find((event) => event.type === 'CUSTOM' && event.name === 'client-tool-ready')
  const decided = ready?.type === 'CUSTOM' ? ready.value : undefined
  expect(decided).toMatchObject({ input: { n: 7 }, decided: { edited: true, input: { n: 7 } } })
  // as the client keeps it
  const kept = stored(fold(history, events)).map((message) =>
    message.role === 'assistant'
      ? {
          ...message,
          toolCalls: (message.toolCalls ?? []).map((one) => ({ ...one, metadata: { countersign: decided } })),
        }
      : message,
  )
  const result: Message = { id: 'r1', role: 'tool', toolCallId: 'c1', content: 'shown' }
  await collect(agent, input([...kept, result]))
  expect(textsOf(model)).toEqual([
    'The user changed the arguments of this call before approving it, to {"n":7}. Result: shown',
  ])
})
