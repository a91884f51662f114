import { DEFAULT_LIMITS, type FullLimits } from '../limits.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import { readerTooSlow } from '../scope/channel.js'

/** Headers of an event stream. No CORS: the application decides which origins may read it. */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Compression would delay events until a block is full.
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
} as const

/** The longest silence by default, in milliseconds: a comment is sent before. */
export const KEEP_ALIVE_MS = 15_000

/** The text of an event stream, one or several frames at a time, as fast as it is read. */
export interface SseFrames {
  /** Default {@link SSE_HEADERS}. */
  readonly headers?: Readonly<Record<string, string>>
  /** The next frames; a comment before a silence becomes too long, so that proxies keep the connection. Undefined at the end. */
  next(): Promise<string | undefined>
  /** The reader has gone, or has everything: called by whoever sends the frames, when the last one has left. */
  cancel(): void
}

/** Writes numbered events as SSE with LF line endings, one JSON event per `data:`, with ids `<runId>:<n>`. */
export function sseFrames(
  events: AsyncIterator<readonly LoggedEvent[]>,
  runId: string,
  keepAlive?: number,
  first?: string,
): SseFrames {
  const write = (batch: readonly LoggedEvent[]) =>
    batch.map(({ n, data }) => `id: ${runId}:${n}\ndata: ${data}\n\n`).join('')
  return framesOf(events, write, keepAlive, undefined, first)
}

/** Converts items to frames with `write`; an empty string means no frame. `first` is sent at once, `last` at the end. */
export function framesOf<T>(
  items: AsyncIterator<T>,
  write: (item: T) => string,
  keepAlive = KEEP_ALIVE_MS,
  last?: string,
  first?: string,
): SseFrames {
  let pending: Promise<IteratorResult<T>> | undefined
  let [head, rest] = [first, last]
  let timer: ReturnType<typeof setTimeout> | undefined
  let isQuiet = false
  let endWait: ((silence: 'silence') => void) | undefined

  // One timer looks at a stream from time to time: one for each frame would cost as much as the frame.
  function look(): void {
    timer = undefined
    if (isQuiet) endWait?.('silence')
    else if (endWait !== undefined) timer = setTimeout(look, keepAlive / 2)
    isQuiet = true
  }

  function read(): Promise<IteratorResult<T> | 'silence'> {
    return new Promise((resolve, reject) => {
      pending ??= items.next()
      pending.then(resolve, (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      })
      isQuiet = false
      endWait = resolve
      timer ??= setTimeout(look, keepAlive / 2)
    })
  }

  return {
    async next() {
      if (head !== undefined) {
        const frame = head
        head = undefined
        return frame
      }
      while (true) {
        const result = await read()
        endWait = undefined
        if (result === 'silence') return ': keep-alive\n\n'
        pending = undefined
        if (result.done) {
          clearTimeout(timer)
          const frame = rest
          rest = undefined
          return frame
        }
        const frame = write(result.value)
        if (frame !== '') return frame
      }
    },
    cancel() {
      clearTimeout(timer)
      // An application's iterator may throw when it is closed, and nobody is left to handle that.
      Promise.resolve(items.return?.()).catch(() => {})
    },
  }
}

/** UTF-16 units that wait for a reader at once. One that takes so few now and then is still there, however long a frame takes it. */
const PIECE = 16 * 1024

export function* piecesOf(frame: string): Iterable<string> {
  for (let at = 0; at < frame.length; ) {
    const from = at
    at += PIECE
    // Not between the halves of a character.
    if (/^[\ud800-\udbff]/.test(frame.slice(at - 1, at))) at++
    yield frame.slice(from, at)
  }
}

/** Requests whose responses are read: Node no longer aborts the signal of a request that was collected. */
const open = new Set<object>()

/**
 * The same frames as the body of the response to a request, which is kept until then. A reader that takes nothing of what is there for
 * `stallTime` has gone: its next read fails. Noticing that takes at most twice as long.
 */
export function sseBody(
  frames: SseFrames,
  request: { readonly signal: AbortSignal } | undefined,
  { stallTime }: FullLimits = DEFAULT_LIMITS,
): ReadableStream<Uint8Array> {
  const utf8 = new TextEncoder()
  let rest: string[] = []
  /** The reader asks for nothing at the moment, and has not left. */
  let isIdle = true
  let timer: (ReturnType<typeof setTimeout> & { unref?(): void }) | undefined
  const leave = () => {
    isIdle = false
    clearTimeout(timer)
    if (request) open.delete(request)
    frames.cancel()
  }
  if (request?.signal.aborted) leave()
  else if (request) {
    open.add(request)
    request.signal.addEventListener('abort', leave, { once: true })
  }
  const afterStall = (act: () => void) => {
    if (!isIdle) return
    timer = setTimeout(act, stallTime)
    timer.unref?.()
  }
  /** The next frame. A reader that asks for none does without comments. */
  const read = async () => {
    let frame: string | undefined
    do frame = await frames.next()
    while (isIdle && frame?.startsWith(':'))
    return frame
  }
  let ahead: Promise<string | undefined> | undefined
  const lookAhead = (controller: ReadableStreamDefaultController, next = read()) => {
    ahead = next
    next.then((frame) => (frame === undefined ? leave() : afterStall(() => lose(controller))), leave)
  }
  const lose = (controller: ReadableStreamDefaultController) => {
    leave()
    controller.error(readerTooSlow(`nothing of its response was read for ${stallTime} ms`))
  }
  return new ReadableStream<Uint8Array>(
    {
      // A run begins whether or not its response is read.
      start: (controller) => lookAhead(controller, frames.next()),
      async pull(controller) {
        isIdle = false
        clearTimeout(timer)
        if (rest.length === 0) {
          let frame: string | undefined
          try {
            frame = await (ahead ?? read())
            ahead = undefined
          } finally {
            if (frame === undefined) leave()
          }
          if (frame === undefined) return controller.close()
          rest = [...piecesOf(frame)]
        }
        controller.enqueue(utf8.encode(rest.shift()))
        isIdle = true
        afterStall(() => (rest.length > 0 ? lose : lookAhead)(controller))
      },
      cancel: leave,
    },
    // A reader that asks for more has sent what it had.
    { highWaterMark: 0 },
  )
}
