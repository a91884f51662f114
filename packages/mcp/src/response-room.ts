import { type Held, Quota } from '@countersign/server/http-kit'

const MIB = 1024 * 1024
/** Bytes of incomplete responses, by server and in this process. */
const SHARE = { perOwner: 32 * MIB, total: 64 * MIB }
const ANY = { perOwner: Number.POSITIVE_INFINITY, total: Number.POSITIVE_INFINITY }

// Per process, like its memory.
const arriving = new Quota()

/** What one response holds until it is complete. */
export interface ResponseRoom {
  /** Returns whether there was room. A response of a server that sends no other is refused only for other servers'. */
  grow(bytes: number): boolean
  release(): void
}

export function takeResponseRoom(server: string): ResponseRoom {
  let held: Held | undefined
  return {
    grow(bytes) {
      held ??= arriving.take(server, 0, ANY, SHARE)
      return held?.grow(Math.min(bytes, SHARE.perOwner - held.size)) === true
    },
    release() {
      held?.release()
      held = undefined
    },
  }
}
