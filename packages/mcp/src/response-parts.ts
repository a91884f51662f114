import { inParseTurn, isLarge } from './parse-turn.js'
import type { ResponseRoom } from './response-room.js'

/** What has arrived of a response, or of the events of a stream. */
export interface Parts {
  /** Adds a piece. Returns whether there is something to parse before the end: of a stream, whole events. Throws at what is too much. */
  add(piece: Uint8Array): boolean
  /** Passes on the whole events, or all. */
  pass(all: boolean, to: (bytes: Uint8Array) => void): Promise<void>
  drop(): void
}

/** The SDK holds the last message of each open stream. After a large one, this is the last. */
const NOTHING = Buffer.from('data: {"jsonrpc":"2.0","method":"notifications/nothing"}\n\n')

/** Collects the pieces of a response, within its limits. `refuse` is told why they are too much. */
export function collected(
  most: number,
  isStream: boolean,
  room: ResponseRoom,
  refuse: (why: string) => void,
): Parts {
  // One buffer that doubles: many small pieces would each cost far more than their bytes.
  let bytes = new Uint8Array()
  let size = 0
  /** How much of it are whole events. */
  let whole = 0
  let last = ''
  const drop = () => {
    bytes = new Uint8Array()
    size = 0
    whole = 0
    last = ''
    room.release()
  }
  const fail = (why: string) => {
    refuse(why)
    throw new Error(why)
  }
  const add = (piece: Uint8Array) => {
    const text = isStream ? last + Buffer.from(piece).toString('latin1') : ''
    last = text.slice(-1)
    const end = endOfEvents(text)
    const now = size + piece.length
    if (now > most && end === 0) fail(`its response has more than ${most} bytes`)
    if (!room.grow(piece.length)) fail('the responses of MCP servers that are arriving hold too much')
    if (now > bytes.length) bytes = enlarged(bytes.subarray(0, size), Math.max(now, Math.min(2 * size, most)))
    bytes.set(piece, size)
    size = now
    if (end > 0) whole = size - text.length + end
    return end > 0
  }
  return {
    add,
    async pass(all, to) {
      const passed = bytes.subarray(0, all ? size : whole)
      const rest = bytes.slice(passed.length, size)
      await inParseTurn(passed.length, () => {
        to(passed)
        if (!all && isLarge(passed.length)) to(NOTHING)
      })
      drop()
      if (rest.length > 0) add(rest)
    },
    drop,
  }
}

/** The length of the text up to its last empty line, which ends an event of a stream; 0 without one. */
function endOfEvents(text: string): number {
  const at = Math.max(...['\n\n', '\n\r', '\r\r'].map((line) => text.lastIndexOf(line)))
  return at < 0 ? 0 : at + 2
}

function enlarged(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length)
  larger.set(bytes)
  return larger
}

/** The same bytes, until there are too many. `ended` is called at the end of a stream, also if it broke: nobody hears of it unless that returns true. */
export function watched(
  body: ReadableStream<Uint8Array>,
  isStream: boolean,
  parts: Parts,
  ended: () => Promise<boolean>,
) {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        let next = await reader.read()
        while (!next.done && !parts.add(next.value)) next = await reader.read()
        await parts.pass(next.done, (bytes) => {
          if (bytes.length > 0) controller.enqueue(bytes)
          // Within its turn, since JSON is parsed at the end.
          if (next.done && !isStream) controller.close()
        })
        if (next.done && isStream && (await ended())) controller.close()
      } catch (error) {
        parts.drop()
        reader.cancel().catch(() => {})
        if (!isStream || (await ended())) controller.error(error)
      }
    },
    cancel: (reason) => {
      parts.drop()
      return reader.cancel(reason)
    },
  })
}
