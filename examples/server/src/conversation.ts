import type { ModelMessage, ToolOutcome } from '@countersign/server'

/** How a tool call ended, as the planner sees it. */
export type Outcome =
  | { kind: 'done'; output: unknown }
  | { kind: 'denied'; reason?: string | undefined }
  /** Nobody answered, or the answer was refused; `code` says why. */
  | { kind: 'cancelled'; code?: string | undefined }
  | { kind: 'failed'; message: string }

export interface Call {
  name: string
  input: Readonly<Record<string, unknown>>
}

export interface FinishedCall extends Call {
  outcome: Outcome
}

/** What a user asked for and what was done about it so far: the calls of each assistant message, in order. */
export interface Turn {
  request: string
  steps: readonly (readonly FinishedCall[])[]
  /** Whether the assistant has written a reply after the last calls. */
  isAnswered: boolean
}

/** The conversation as turns: each begins with a user message. */
export function turnsOf(messages: readonly ModelMessage[]): Turn[] {
  const outcomes = new Map(
    messages
      .flatMap((message) => (message.role === 'tool' ? message.content : []))
      .filter((answer) => answer.type === 'tool-result')
      .map((result) => [result.toolCallId, outcomeOf(result.outcome)]),
  )
  const turns: { request: string; steps: FinishedCall[][]; isAnswered: boolean }[] = []
  for (const message of messages) {
    if (message.role === 'user') {
      const texts = message.content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
      turns.push({ request: texts.join('\n').trim(), steps: [], isAnswered: false })
    } else if (message.role === 'assistant') {
      const turn = turns.at(-1)
      if (!turn) continue
      const calls = message.content.flatMap((part) => (part.type === 'tool-call' ? [part] : []))
      turn.isAnswered = calls.length === 0
      if (calls.length === 0) continue
      turn.steps.push(
        calls.map(({ id, name, arguments: text }) => ({
          name,
          input: readInput(text),
          outcome: outcomes.get(id) ?? { kind: 'cancelled' },
        })),
      )
    }
  }
  return turns
}

function outcomeOf(outcome: ToolOutcome): Outcome {
  if ('value' in outcome) return { kind: 'done', output: outcome.value }
  const { kind, reason } = outcome
  if (kind === 'denied') return { kind: 'denied', reason }
  if (kind === 'cancelled') return { kind: 'cancelled', code: outcome.code }
  return { kind: 'failed', message: reason ?? outcome.code ?? 'it failed' }
}

function readInput(text: string): Call['input'] {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
