import type { Message, Preview, ToolContext } from '@countersign/core'
import type { AgentOptions } from '@countersign/server'
import { type Asked, call, counted, say, testAgent } from '../support.js'

type Options = NonNullable<Parameters<typeof counted>[1]>

/** A file that others may change, and a tool that shows how it would change it. */
export function fileTool(more: Options = {}) {
  const world = { text: 'one', computed: 0 }
  const approved: (Preview | undefined)[] = []
  const made = counted('write', {
    needsApproval: true,
    preview: (input): Preview => {
      world.computed++
      return { kind: 'diff', name: 'a.txt', before: world.text, after: String(input.text) }
    },
    execute: (_: unknown, context: ToolContext) => {
      approved.push(context.preview)
      return { done: true }
    },
    ...more,
  })
  return { world, approved, ...made }
}

export const diff = (before: string, after = 'new'): Preview => ({
  kind: 'diff',
  name: 'a.txt',
  before,
  after,
})

/** The model calls the tool once, and says something whenever it is called after that. */
export function writer(made: ReturnType<typeof fileTool>, options: Partial<AgentOptions> = {}) {
  const turns = [call(['call_1', 'write', { text: 'new' }]), ...Array.from({ length: 20 }, () => say('done'))]
  return testAgent(turns, { tools: [made.tool], ...options })
}

/** The answer of a page that shows previews: it returns what it showed. */
export function yes(asked: Asked, more: Record<string, unknown> = {}, own: object = {}) {
  const { id, token, preview } = asked.approval
  const countersign = { token, sentIn: 'run', preview, ...own }
  return {
    interruptId: id,
    status: 'resolved' as const,
    payload: { approved: true, ...more },
    metadata: { countersign },
  }
}

/** The history of a page that folds approval requests: its calls name the latest one. */
export function naming(
  history: readonly Message[],
  { toolCallId, approval: { id, token, preview } }: Asked,
  shown: unknown = preview,
): Message[] {
  const countersign = { token, approval: { id, preview: shown } }
  return history.map((message) =>
    message.role === 'assistant' && message.toolCalls
      ? {
          ...message,
          toolCalls: message.toolCalls.map((one) =>
            one.id === toolCallId ? { ...one, metadata: { countersign } } : one,
          ),
        }
      : message,
  )
}
