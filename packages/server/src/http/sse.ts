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
  keepAliveMs: number,
): SseFrames {
  const write = (batch: readonly LoggedEvent[]) =>
    batch.map(({ n, data }) => `id: ${runId}:${n}\ndata: ${data}\n\n`).join('')
  return framesOf(events, write, keepAliveMs)
}

/** Converts items to frames with `write`; an empty string means no frame. `last` is sent at the end. */
export function framesOf<T>(
  items: AsyncIterator<T>,
  write: (item: T) => string,
  keepAliveMs: number,
  last?: string,
): SseFrames {
  let pending: Promise<IteratorResult<T>> | undefined
  let rest = last
  let timer: ReturnType<typeof setTimeout> | undefined
  let isQuiet = false
  let endWait: ((silence: 'silence') => void) | undefined

  // One timer looks at a stream from time to time: one for each frame would cost as much as the frame.
  function look(): void {
    timer = undefined
    if (isQuiet) endWait?.('silence')
    else if (endWait !== undefined) timer = setTimeout(look, keepAliveMs / 2)
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
      timer ??= setTimeout(look, keepAliveMs / 2)
    })
  }

  return {
    async next() {
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

/** UTF-16 units of a piece of a reply. */
export const PIECE = 64 * 1024

/** A text in pieces, so that a reader who takes none is noticed. `done` is called once it was read, or its reader has gone. */
export function piecesOf(
  text: string,
  headers: Readonly<Record<string, string>>,
  done: () => void,
): SseFrames {
  let at = 0
  return {
    headers,
    async next() {
      const from = at
      at += PIECE
      // Not between the halves of a character.
      if (/^[\ud800-\udbff]/.test(text.slice(at - 1, at))) at++
      if (from < text.length) return text.slice(from, at)
      done()
      return undefined
    },
    cancel: done,
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
  /** Of the last frame. A reader that takes so little now and then is still there, however long a frame takes it. */
  let rest = new Uint8Array()
  /** The reader asks for nothing at the moment, and has not left. */
  let isIdle = true
  let timer: (ReturnType<typeof setTimeout> & { unref?(): void }) | undefined
  const done = () => void (request && open.delete(request))
  const leave = () => {
    isIdle = false
    clearTimeout(timer)
    done()
    frames.cancel()
  }
  if (request && !request.signal.aborted) {
    open.add(request)
    request.signal.addEventListener('abort', done, { once: true })
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
          rest = utf8.encode(frame)
        }
        controller.enqueue(rest.subarray(0, PIECE))
        rest = rest.subarray(PIECE)
        isIdle = true
        afterStall(() => (rest.length > 0 ? lose : lookAhead)(controller))
      },
      cancel: leave,
    },
    // A reader that asks for more has sent what it had.
    { highWaterMark: 0 },
  )
}
