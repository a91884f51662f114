import { type AGUIEvent, CountersignError, toAGUIMessages, type UIMessage } from '@countersign/core'
import { type AgentOptions, createAgent, memoryLedger, ToolError, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { adapters, type Protocol, type SaidCall } from './protocols.mjs'
import { serve } from './serve.js'

/** What the engine does about a call that needs a yes is the same behind every adapter, streaming and not: adapters hold none of it. */

const SECRET = 'countersign-test-secret-0123456789abcdef'

const mail: SaidCall = {
  id: 'call_1',
  name: 'send_email',
  arguments: '{"to":"ann@example.org","key":"secret"}',
}
const second: SaidCall = { id: 'call_3', name: 'send_email', arguments: '{"to":"bob@example.org"}' }
const look: SaidCall = { id: 'call_2', name: 'look', arguments: '{}' }

interface Turn {
  readonly text?: string
  readonly calls?: readonly SaidCall[]
}

async function open(
  protocol: Protocol,
  stream: boolean,
  turns: readonly Turn[],
  more: Partial<AgentOptions> = {},
) {
  const server = await serve(...turns.map((turn) => protocol.say({ ...turn, stream })))
  const sent: unknown[] = []
  const send = tool({
    name: 'send_email',
    description: 'Sends a mail.',
    input: z.object({ to: z.string(), key: z.string().optional() }),
    needsApproval: true,
    message: 'Really?',
    redact: (input) => ({ ...input, key: '***' }),
    execute: (input) => {
      sent.push(input)
      return 'sent'
    },
  })
  const looking = tool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    execute: () => ({ saw: 'it' }),
  })
  const failing = tool({
    name: 'fail',
    description: 'Fails.',
    input: z.object({}),
    execute: () => {
      throw new ToolError('the disk is full')
    },
  })
  const model = protocol.model(server.origin, { stream })
  const agent = createAgent({
    model,
    tools: [send, looking, failing],
    warn: () => {},
    onError: () => {},
    ...more,
    approvals: { secret: SECRET, ledger: memoryLedger(), ...more.approvals },
  })
  return { agent, sent, server }
}

let runs = 0

function input(messages: readonly UIMessage[], more: object = {}) {
  return {
    threadId: 'thread',
    runId: `run_${++runs}`,
    protocolVersion: '1.0',
    messages: [...toAGUIMessages(messages)],
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
    ...more,
  }
}

const go: UIMessage = { id: 'user_1', role: 'user', parts: [{ type: 'text', text: 'go' }] }

function asked(events: readonly AGUIEvent[]) {
  return events.flatMap((event) =>
    event.type === 'CUSTOM' && event.name === 'approval-requested' ? [event.value] : [],
  )
}

function projected(events: readonly AGUIEvent[]) {
  return events.flatMap((event) =>
    event.type === 'TOOL_CALL_START' && event.toolCallName === 'client.requestApproval'
      ? [event.toolCallId]
      : [],
  )
}

function outputs(events: readonly AGUIEvent[]) {
  return events.flatMap((event) =>
    event.type === 'TOOL_CALL_RESULT' ? [[event.toolCallId, event.content]] : [],
  )
}

const callParts = (messages: readonly UIMessage[]) =>
  messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'))

const asTool = { approvals: { askAsTool: true } }

for (const protocol of adapters) {
  for (const stream of [true, false]) {
    const how = `${protocol.name}, ${stream ? 'streaming' : 'whole'}`
    const number = `S3.${protocol.line + (stream ? 0 : 1)}`
    const start = (turns: readonly Turn[], more: Partial<AgentOptions> = {}) =>
      open(protocol, stream, turns, more)

    test(`${number} a gated call runs nothing, asks once, and the run ends well (${how})`, async () => {
      const { agent, sent, server } = await start([{ calls: [mail] }])
      const result = await agent.generate(input([go]))
      expect(sent).toEqual([])
      expect(asked(result.events)).toHaveLength(1)
      expect(result.outcome).toBe('interrupt')
      expect(result.events.map(({ type }) => type)).not.toContain('RUN_ERROR')
      expect(server.requests).toHaveLength(1)
    })

    test(`S3.61 the question is sent as a call of client.requestApproval too (${how})`, async () => {
      const { agent } = await start([{ calls: [mail] }], asTool)
      const { events } = await agent.generate(input([go]))
      const [id = ''] = projected(events)
      expect(id).toMatch(/^approval_/)
      const own = events.filter((event) => 'toolCallId' in event && event.toolCallId === id)
      expect(own.map(({ type }) => type)).toEqual(['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END'])
      const text = own.map((event) => (event.type === 'TOOL_CALL_ARGS' ? event.delta : '')).join('')
      expect(JSON.parse(text)).toMatchObject({
        toolName: 'send_email',
        args: { to: 'ann@example.org', key: '***' },
        message: 'Really?',
        options: ['deny', 'once'],
      })
      expect(text).not.toContain('secret')
    })

    test(`S3.62 the question is kept before the call's end is told, and one that cannot be kept is not shown (${how})`, async () => {
      const order: string[] = []
      const ledger = memoryLedger()
      const kept = Object.assign(Object.create(ledger), {
        issue: (record: Parameters<typeof ledger.issue>[0]) => {
          order.push('kept')
          return ledger.issue(record)
        },
      })
      const { agent } = await start([{ calls: [mail] }], { approvals: { ledger: kept } })
      for await (const event of agent.run(input([go]))) order.push(event.type)
      expect(order.indexOf('kept')).toBeGreaterThan(-1)
      expect(order.indexOf('kept')).toBeLessThan(order.indexOf('TOOL_CALL_END'))

      const full = Object.assign(Object.create(ledger), { issue: () => Promise.reject(new Error('no disk')) })
      const broken = await start([{ calls: [mail] }, { text: 'I could not ask.' }], {
        approvals: { ledger: full },
      })
      const { events } = await broken.agent.generate(input([go]))
      expect(asked(events)).toEqual([])
      expect(outputs(events)).toHaveLength(1)
      expect(broken.sent).toEqual([])
    })

    test(`S3.63 S3.66 text before the call stays, and the call stands next to its question (${how})`, async () => {
      const { agent } = await start([{ text: 'I will send it.', calls: [mail] }], asTool)
      const { messages } = await agent.generate(input([go]))
      expect(messages.at(-1)?.parts).toMatchObject([
        { type: 'text', text: 'I will send it.' },
        { type: 'tool-call', id: 'call_1', name: 'send_email', state: 'approval-requested' },
        { type: 'tool-call', name: 'client.requestApproval' },
      ])
    })

    test(`S3.64 S3.65 each gated call asks, and a safe sibling keeps its result (${how})`, async () => {
      const { agent, sent } = await start([{ calls: [mail, look, second] }])
      const { events, messages } = await agent.generate(input([go]))
      expect(asked(events).map(({ toolCallId }) => toolCallId)).toEqual(['call_1', 'call_3'])
      expect(outputs(events)).toEqual([['call_2', '{"saw":"it"}']])
      expect(callParts(messages).map(({ state }) => state)).toEqual([
        'approval-requested',
        'complete',
        'approval-requested',
      ])
      expect(sent).toEqual([])
    })

    test(`S3.67 an ordinary error of a tool is the call's result, and the model goes on (${how})`, async () => {
      const turns = [{ calls: [{ id: 'call_9', name: 'fail', arguments: '{}' }] }, { text: 'Sorry.' }]
      const { agent, server } = await start(turns)
      const { events, text } = await agent.generate(input([go]))
      expect(outputs(events)).toEqual([['call_9', expect.stringContaining('the disk is full')]])
      expect(text).toBe('Sorry.')
      expect(JSON.stringify(server.requests[1]?.body)).toContain('the disk is full')
    })

    test(`S3.68 a run without a client leaves a question that another server answers from what was stored (${how})`, async () => {
      const ledger = memoryLedger()
      const first = await start([{ calls: [mail] }], { approvals: { ledger } })
      const background = await first.agent.generate(input([go]))
      const stored: UIMessage[] = JSON.parse(JSON.stringify(background.messages))
      const [question] = asked(background.events)
      const later = await start([{ text: 'Sent.' }], { approvals: { ledger } })
      const answer = {
        interruptId: question.approval.id,
        status: 'resolved' as const,
        payload: { approved: true },
        metadata: { countersign: { token: question.approval.token } },
      }
      const done = await later.agent.generate(input(stored, { resume: [answer] }))
      expect(done.text).toBe('Sent.')
      expect(later.sent).toEqual([{ to: 'ann@example.org', key: 'secret' }])
      expect(first.sent).toEqual([])
    })

    test(`a provider that fails ends the run with an error that names no secret (${how})`, async () => {
      const body = Buffer.from('{"error":{"message":"Incorrect API key: sk-1","code":"invalid_api_key"}}')
      const server = await serve({ body, status: 401, contentType: 'application/json' })
      const agent = createAgent({
        model: protocol.model(server.origin, { stream }),
        warn: () => {},
        onError: () => {},
      })
      const error = await agent.generate(input([go])).catch((thrown: unknown) => thrown)
      if (!(error instanceof CountersignError)) throw new Error('it did not fail')
      expect(error.code).toBe('run-error')
      expect(error.message).not.toContain('sk-1')
    })
  }
}
