import type { LoggedEvent } from '../run-log/run-log.js'

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

/** Writes numbered events as SSE with LF framing, one JSON event per `data:`, under the ids `<runId>:<n>`. */
export function sseFrames(events: AsyncIterator<LoggedEvent>, runId: string, keepAliveMs: number): SseFrames {
  let pending: Promise<IteratorResult<LoggedEvent>> | undefined
  return {
    async next() {
      pending ??= events.next()
      const result = await orSilence(pending, keepAliveMs)
      if (result === 'silence') return ': keep-alive\n\n'
      pending = undefined
      return result.done ? undefined : `id: ${runId}:${result.value.n}\ndata: ${result.value.data}\n\n`
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

/** The same frames as the body of a response. */
export function sseBody(frames: SseFrames): ReadableStream<Uint8Array> {
  const utf8 = new TextEncoder()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const frame = await frames.next()
      if (frame === undefined) controller.close()
      else controller.enqueue(utf8.encode(frame))
    },
    cancel: () => frames.cancel(),
  })
}
