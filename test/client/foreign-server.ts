import { ChatClient, type ChatClientOptions, stream } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { onTestFinished } from 'vitest'

/** A server that is not ours: its runs are lists of events, and `cut` breaks the stream. */

export type Event = AGUIEvent
type Run = (input: RunAgentInput) => Iterable<Event | 'cut'> | AsyncIterable<Event | 'cut'>

export const call = (id: string, n: number, parentMessageId = `m${n}`): Event[] => [
  { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'act', parentMessageId },
  { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify({ n }) },
  { type: 'TOOL_CALL_END', toolCallId: id },
]
export const ask = (toolCallId: string, id: string, n: number): Event => ({
  type: 'CUSTOM',
  name: 'approval-requested',
  value: { toolCallId, input: { n }, approval: { id, options: ['deny', 'once'] } },
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
  const resume = () =>
    requests.map(({ resume = [] }) =>
      resume.map(({ interruptId, status, payload }) => [interruptId, payload ?? status]),
    )
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
  return { client, pending, calls, warnings }
}
