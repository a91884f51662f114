import type { ChatClient, MessagePart, ToolMap } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import type { RecordedAction, RecordedStep, TimelineEntry } from './form.js'

const SEPARATOR = ' | '

/** Prints the chat on one line: status, texts and calls, queue, and the two flags of the continuation. */
export function printState<Tools extends ToolMap>(
  client: Pick<ChatClient<Tools>, 'getSnapshot' | 'inspect'>,
): string {
  const { status, messages, queue, error } = client.getSnapshot()
  const { continuationPending, continuationSkipped } = client.inspect()
  const parts = messages.flatMap((message) => message.parts.map((part) => printPart(message.role, part)))
  return [
    status,
    ...parts.filter((part) => part !== ''),
    ...(queue.length > 0 ? [`queue ${queue.length}`] : []),
    ...(error ? [`error ${error.code}`] : []),
    `pending=${continuationPending} skipped=${continuationSkipped}`,
  ].join(SEPARATOR)
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

/** Prints an entry on one line. */
export function printEntry(entry: TimelineEntry): string {
  switch (entry.kind) {
    case 'request':
      return printRequest(entry.input)
    case 'event':
      return printEvent(entry.event)
    case 'closed':
      return entry.how
    case 'note':
    case 'action':
    case 'state':
      return entry.text
    default:
      return entry satisfies never
  }
}

/** Prints only what is new in a state since the previous one: its status, the parts that changed, and flags that are set. */
export function printNews(state: string, before: string): string {
  const known = new Set(before.split(SEPARATOR))
  const [status = '', ...parts] = state.split(SEPARATOR)
  const flags = (parts.pop() ?? '').split(' ').filter((flag) => flag.endsWith('=true'))
  const news = parts.filter((part) => !known.has(part))
  return [status, ...news, ...flags.map((flag) => flag.replace('=true', ''))].join(SEPARATOR)
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

function printEvent({ type, ...rest }: Extract<TimelineEntry, { readonly kind: 'event' }>['event']): string {
  const {
    threadId: _thread,
    runId: _run,
    protocolVersion: _version,
    ...shown
  }: Record<string, unknown> = rest
  return oneLine([type, ...Object.values(shown)])
}

/** Prints a user action on one line. */
export function printAction({ name, value }: RecordedAction): string {
  return oneLine([name, ...(value === undefined ? [] : [value])])
}

/** Prints a local step on one line. */
export function printStep({ type, ...rest }: RecordedStep): string {
  return oneLine([type, ...Object.values(rest)])
}

function oneLine(values: readonly unknown[]): string {
  return values.map(printValue).join(' ').slice(0, 160)
}

function printValue(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
