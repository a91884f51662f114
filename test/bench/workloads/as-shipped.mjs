import { ChatClient } from '@tanstack/ai-client'

/** What TanStack's client does per second with its timers in place. It waits more than it computes, so it stays out of the tables. */
export async function asShipped(count) {
  const client = new ChatClient({
    threadId: 'thread',
    connection: {
      async *connect(_messages, _data, _signal, { threadId, runId }) {
        yield { type: 'RUN_STARTED', threadId, runId }
        yield { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' }
        for (let i = 0; i < count; i++) yield { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'word ' }
        yield { type: 'TEXT_MESSAGE_END', messageId: 'm' }
        yield { type: 'RUN_FINISHED', threadId, runId, finishReason: 'stop' }
      },
    },
  })
  const start = performance.now()
  await client.sendMessage('go')
  const perSecond = Math.round((count * 1000) / (performance.now() - start))
  client.dispose?.()
  return `TanStack AI as shipped waits for a timer after each chunk and takes ${perSecond} deltas per second here; the table shows it without the timer.`
}
