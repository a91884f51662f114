import type { AGUIEvent } from '@countersign/core'

/** Headers of an event stream. No CORS: which origins may read it is the application's to say. */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
} as const

/** The text of an event stream, frame by frame, as fast as it is asked for. */
export interface SseFrames {
  /** The next frame; a comment where nothing was said for a while, so that no proxy gives up. Nothing at the end. */
  next(): Promise<string | undefined>
  /** The reader has gone. */
  cancel(): void
}

/** Writes events as SSE with LF framing, one JSON event per `data:`, numbered `<runId>:<n>`. */
export function sseFrames(events: AsyncIterator<AGUIEvent>, runId: string, keepAliveMs: number): SseFrames {
  let count = 0
  let pending: Promise<IteratorResult<AGUIEvent>> | undefined
  return {
    async next() {
      pending ??= events.next()
      const result = await orSilence(pending, keepAliveMs)
      if (result === 'silence') return ': keep-alive\n\n'
      pending = undefined
      return result.done ? undefined : `id: ${runId}:${++count}\ndata: ${JSON.stringify(result.value)}\n\n`
    },
    cancel() {
      void events.return?.()
    },
  }
}

async function orSilence<T>(work: Promise<T>, ms: number): Promise<T | 'silence'> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<'silence'>((resolve) => {
    timer = setTimeout(resolve, ms, 'silence')
  })
  try {
    return await Promise.race([work, silence])
  } finally {
    clearTimeout(timer)
  }
}
