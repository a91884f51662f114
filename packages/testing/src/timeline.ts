import type { ChatActions, ChatClient, MessagePart, ToolMap } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import type { ScriptedEvent } from './writer.js'

/** One line of what happened. `run` counts requests from 1. */
export type TimelineEntry =
  | { readonly kind: 'request'; readonly run: number; readonly input: RunAgentInput }
  | { readonly kind: 'event'; readonly run: number; readonly event: ScriptedEvent }
  | { readonly kind: 'closed'; readonly run: number; readonly how: string }
  | { readonly kind: 'note'; readonly run: number; readonly text: string }
  | { readonly kind: 'act'; readonly text: string }
  | { readonly kind: 'state'; readonly text: string }

/** What happened, in order, on both sides. */
export interface Timeline {
  readonly entries: readonly TimelineEntry[]
  add(entry: TimelineEntry): void
  /** Notes the person's act, and is noted with it. */
  act(text: string): void
  print(): string
}

export function createTimeline(): Timeline {
  const entries: TimelineEntry[] = []
  return {
    entries,
    add: (entry) => void entries.push(entry),
    act: (text) => void entries.push({ kind: 'act', text }),
    print: () => entries.map(printEntry).join('\n'),
  }
}

function printEntry(entry: TimelineEntry): string {
  switch (entry.kind) {
    case 'request':
      return `request ${entry.run}   ${printRequest(entry.input)}`
    case 'event':
      return `  stream ${entry.run}  ${printEvent(entry.event)}`
    case 'closed':
      return `  closed ${entry.run}  ${entry.how}`
    case 'note':
      return `  script ${entry.run}  ${entry.text}`
    case 'act':
      return `act         ${entry.text}`
    case 'state':
      return `    state   ${entry.text}`
    default:
      return entry satisfies never
  }
}

function printRequest({ messages, resume = [] }: RunAgentInput): string {
  const answers = resume.map(({ interruptId, status, payload }) => {
    if (status === 'cancelled') return `${interruptId}: cancelled`
    return `${interruptId}: ${JSON.stringify(payload)}`
  })
  return [
    `${messages.length} messages`,
    ...(answers.length > 0 ? [`resume ${answers.join(', ')}`] : []),
  ].join(', ')
}

function printEvent({ type, ...rest }: ScriptedEvent): string {
  const {
    threadId: _thread,
    runId: _run,
    protocolVersion: _version,
    ...shown
  }: Record<string, unknown> = rest
  const values = Object.values(shown).map((value) =>
    typeof value === 'string' ? value : JSON.stringify(value),
  )
  return [type, ...values].join(' ').slice(0, 160)
}

/**
 * Notes every change of the chat and everything its person does in it. Act through what it returns, or through the client where an act
 * need not be noted.
 */
export function watch<Tools extends ToolMap>(
  client: ChatClient<Tools>,
  timeline: Timeline,
): ChatActions<Tools> {
  let last = ''
  const note = () => {
    const text = printState(client)
    if (text !== last) timeline.add({ kind: 'state', text })
    last = text
  }
  client.subscribe(note)
  const noted = Object.entries(client.actions).map(([name, action]) => [
    name,
    (...args: readonly unknown[]) => {
      timeline.act([name, ...args.map((arg) => JSON.stringify(arg))].join(' '))
      const result: unknown = Reflect.apply(action, undefined, args)
      note()
      return result
    },
  ])
  return Object.fromEntries(noted)
}

/** The chat on one line: status, what is said and asked, queue, and the two flags of the continuation. */
export function printState<Tools extends ToolMap>(client: ChatClient<Tools>): string {
  const { status, messages, queue, error } = client.getSnapshot()
  const { continuationPending, continuationSkipped } = client.inspect()
  const parts = messages.flatMap((message) => message.parts.map((part) => printPart(message.role, part)))
  return [
    status,
    ...parts.filter((part) => part !== ''),
    ...(queue.length > 0 ? [`queue ${queue.length}`] : []),
    ...(error ? [`error ${error.code}`] : []),
    `pending=${continuationPending} skipped=${continuationSkipped}`,
  ].join(' | ')
}

function printPart(role: string, part: MessagePart): string {
  if (part.type === 'text')
    return `${role} "${part.text.length > 24 ? `${part.text.slice(0, 23)}…` : part.text}"`
  if (part.type !== 'tool-call') return ''
  const { approval } = part
  if (!approval) return `${part.id} ${part.state}`
  const answer = approval.approved === undefined ? '' : approval.approved ? ' yes' : ' no'
  return `${part.id} ${part.state} ${approval.id}${answer}${approval.delivery ? ` ${approval.delivery}` : ''}`
}

/** Runs `test`; where it fails, the timeline stands below the message of its error. */
export async function explained<T>(timeline: Timeline, test: () => Promise<T>): Promise<T> {
  try {
    return await test()
  } catch (error) {
    if (error instanceof Error) error.message += `\n\nWhat happened:\n${timeline.print()}`
    throw error
  }
}
