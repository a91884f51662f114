import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { createAgent } from '@countersign/server'
import { expect, test } from 'vitest'
import { call, calls, mailTool, says, scriptedModel } from './engine.js'

const page = readFileSync(join(import.meta.dirname, '../../docs/architecture.md'), 'utf8')

/** The event sequences that the architecture page shows, by title. */
const documented = new Map(
  [...page.matchAll(/^```events (.+)\n([\s\S]*?)^```/gm)].map(([, title = '', lines = '']) => [
    title,
    lines.trim().split('\n'),
  ]),
)

function named(event: AGUIEvent): string {
  if (event.type === 'CUSTOM') return `CUSTOM ${event.name}`
  return event.type === 'RUN_FINISHED' ? `RUN_FINISHED ${event.outcome?.type}` : event.type
}

test('S4.92 the event sequences of the architecture page are what the engine sends', async () => {
  const { mail } = mailTool()
  const model = scriptedModel([calls(call('c1', 'send_email', { to: 'a@example.org' })), says('Sent.')])
  const agent = createAgent({ model, tools: [mail], warn: () => {} })
  const run = async (input: Partial<RunAgentInput>) => {
    const { events } = await agent.generate({
      threadId: 't',
      runId: 'r',
      protocolVersion: '1.0',
      messages: [],
      tools: [],
      context: [],
      ...input,
    })
    return events
  }
  const asked = await run({ messages: [{ id: 'u', role: 'user', content: 'Mail a.' }] })
  expect(asked.map(named)).toEqual(documented.get('gated call'))
  const end = asked.at(-1)
  const [interrupt] =
    end?.type === 'RUN_FINISHED' && end.outcome?.type === 'interrupt' ? end.outcome.interrupts : []
  const answered = await run({
    runId: 'r2',
    messages: [
      { id: 'u', role: 'user', content: 'Mail a.' },
      {
        id: 'a',
        role: 'assistant',
        toolCalls: [
          {
            id: 'c1',
            type: 'function',
            function: { name: 'send_email', arguments: '{"to":"a@example.org"}' },
          },
        ],
      },
    ],
    resume: [{ interruptId: interrupt?.id ?? '', status: 'resolved', payload: { approved: true } }],
  })
  expect(answered.map(named)).toEqual(documented.get('answered call'))
})
