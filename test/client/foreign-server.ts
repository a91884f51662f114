import { ChatClient, type ChatClientOptions, type Connection, stream } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { onTestFinished, vi } from 'vitest'

/** A server that is not ours: its runs are lists of events, and `cut` breaks the stream. */

export type Event = AGUIEvent
type Run = (input: RunAgentInput) => Iterable<Event | 'cut'> | AsyncIterable<Event | 'cut'>

export const call = (id: string, n: number, parentMessageId = `m${n}`): Event[] => [
  { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'act', parentMessageId },
  { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify({ n }) },
  { type: 'TOOL_CALL_END', toolCallId: id },
]
export const ask = (toolCallId: string, id: string, n: number, more = {}): Event => ({
  ...{ type: 'CUSTOM', name: 'approval-requested' },
  value: { toolCallId, input: { n }, approval: { id, options: ['deny', 'once'], ...more } },
})
/** A request that does not say the arguments of its call. */
export const askBare = (toolCallId: string, approval: object): Event => ({
  ...{ type: 'CUSTOM', name: 'approval-requested', value: { toolCallId, approval } },
})
export const finish = (
  { threadId, runId }: RunAgentInput,
  ...asked: [id: string, toolCallId?: string][]
): Event => ({
  type: 'RUN_FINISHED',
  threadId,
  runId,
  outcome:
    asked.length === 0
      ? { type: 'success' }
      : {
          type: 'interrupt',
          interrupts: asked.map(([id, toolCallId]) =>
            toolCallId ? { id, reason: 'tool_call', toolCallId } : { id, reason: 'input_required' },
          ),
        },
})

type Ids = Pick<RunAgentInput, 'threadId' | 'runId'>
/** The end of a run that raises these interrupts, about the call c1 unless they say another one. */
export const raise = ({ threadId, runId }: Ids, ...interrupts: object[]): Event => ({
  ...{ type: 'RUN_FINISHED', threadId, runId },
  outcome: {
    type: 'interrupt',
    interrupts: interrupts.map((one) => ({ id: 'a1', reason: 'tool_call', toolCallId: 'c1', ...one })),
  },
})
/** What an interrupt carries that says the arguments of its call. */
export const says = (n: number) => ({ metadata: { countersign: { toolName: 'act', input: { n } } } })
export const resultOf = (toolCallId: string, content = 'ok', outcome?: string): Event => ({
  ...{ type: 'TOOL_CALL_RESULT', messageId: `r-${toolCallId}-${content}`, toolCallId, role: 'tool', content },
  ...(outcome !== undefined && { metadata: { countersign: { outcome } } }),
})
type Message = Extract<Event, { type: 'MESSAGES_SNAPSHOT' }>['messages'][number]
export const snapshot = (...messages: Message[]): Event => ({ type: 'MESSAGES_SNAPSHOT', messages })
/** The message of a reply that makes a call, as a snapshot has it. */
export const calling = (id: string, toolCallId: string, text: string) => ({
  ...{ id, role: 'assistant' as const, content: '' },
  toolCalls: [{ id: toolCallId, type: 'function' as const, function: { name: 'act', arguments: text } }],
})

/** A run that makes the call c1 and asks about it; and one that ends with its result. */
export const asks = (input: RunAgentInput) => [...call('c1', 1), finish(input, ['a1', 'c1'])]
export const ends = (input: RunAgentInput) => [resultOf('c1'), finish(input)]

export const yes = (id: string) => ({ id, approved: true })
export const no = (id: string) => ({ id, approved: false })

/** An entry of `resume`: `a1 yes`, `a1 no`, `a1 cancelled`, or the id and the payload of another response. */
function inShort({ interruptId, status, payload }: NonNullable<RunAgentInput['resume']>[number]) {
  if (status === 'cancelled') return `${interruptId} cancelled`
  const [bare] = [true, false].filter((approved) => JSON.stringify(payload) === JSON.stringify({ approved }))
  return bare === undefined ? [interruptId, payload] : `${interruptId} ${bare ? 'yes' : 'no'}`
}

/** What it was asked, and what each request answered. */
export function server(...runs: Run[]) {
  const requests: RunAgentInput[] = []
  const connection = stream(async function* (input) {
    requests.push(structuredClone(input))
    const { threadId, runId } = input
    yield { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
    for await (const event of runs[requests.length - 1]?.(input) ?? [finish(input)]) {
      if (event === 'cut') throw new Error('cut')
      yield event
    }
  })
  const resume = () => requests.map(({ resume = [] }) => resume.map(inShort))
  return { connection, requests, resume }
}

export function open(options: Pick<ChatClientOptions, 'connection'> & Partial<ChatClientOptions>) {
  const warnings: string[] = []
  const onWarning = (warning: string) => void warnings.push(warning)
  const client = new ChatClient({ threadId: 't', onError: () => {}, onWarning, ...options })
  onTestFinished(() => client.dispose())
  const pending = () =>
    client.getSnapshot().pendingApprovals.map(({ id, input, approval }) => [approval.id, id, input])
  const calls = () =>
    client
      .getSnapshot()
      .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [part] : [])))
  /** The ids of what is asked but for approvals. */
  const interrupts = () => client.getSnapshot().interrupts.map(({ id }) => id)
  const approve = (id: string) => client.addToolApprovalResponse(yes(id))
  const deny = (id: string) => client.addToolApprovalResponse(no(id))
  return { client, pending, calls, interrupts, warnings, approve, deny }
}

type Options = Partial<Parameters<typeof open>[0]>

/** A chat with this server, after its first message. */
export const start = (...runs: Run[]) => startWith({}, ...runs)

export async function startWith(options: Options, ...runs: Run[]) {
  const { connection, requests, resume } = server(...runs)
  const chat = open({ connection, ...options })
  await chat.client.sendMessage('go')
  return { ...chat, requests, resume }
}

/** A chat whose run is open, and asks: `sent` is its first message. */
export async function startOpen(connection: Connection, options: Options = {}) {
  const chat = open({ connection, ...options })
  const sent = chat.client.sendMessage('go')
  await vi.waitUntil(() => chat.pending().length > 0)
  return { ...chat, sent }
}

/** What holds a run back until it is called. */
export function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  onTestFinished(() => open())
  return { open: () => open(), opened }
}
