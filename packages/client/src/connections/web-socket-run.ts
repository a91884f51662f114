import { CountersignError } from '@countersign/core'

/** One run on a socket, with what arrived for it and was not read yet. */
export interface SocketRun {
  readonly id: string
  /** The message that asks for it. */
  readonly request: string
  /** Whether an event has arrived. */
  readonly begun: boolean
  /** `size`: how much text the events came in. `id`: of the last of them. */
  push(events: readonly unknown[], size: number, id?: string): void
  /** No more will come. What arrived before can still be read, an error comes after it. */
  end(error?: CountersignError): void
  /** Nobody reads any more. */
  drop(): void
  /**
   * What arrived since the last read, together: nothing, if that was only a sign of life. `onTaken` is told the id of the last event once they
   * were taken.
   */
  read(onTaken: ((id: string) => void) | undefined): AsyncGenerator<readonly unknown[], void, undefined>
}

export function createSocketRun(id: string, request: string, maxUnread: number): SocketRun {
  let state: 'open' | 'ended' = 'open'
  let unread: unknown[] = []
  let size = 0
  let lastId: string | undefined
  let fault: CountersignError | undefined
  let begun = false
  let isRead = true
  let wake = (): void => {}

  function take(): readonly unknown[] {
    const batch = unread
    unread = []
    size = 0
    isRead = true
    return batch
  }

  function end(error?: CountersignError): void {
    if (state === 'ended') return
    state = 'ended'
    fault = error
    wake()
  }

  return {
    id,
    request,
    get begun() {
      return begun
    },
    push(events, more, id) {
      if (state === 'ended') return
      begun = true
      isRead = false
      size += more
      // What is never read must not fill the memory: a socket cannot be asked to wait.
      if (size > maxUnread) return end(unreadTooLarge(maxUnread))
      for (const event of events) unread.push(event)
      lastId = id ?? lastId
      wake()
    },
    end,
    drop() {
      take()
      end()
      fault = undefined
    },
    async *read(onTaken) {
      while (true) {
        if (!isRead) {
          const id = lastId
          yield take()
          if (id !== undefined) onTaken?.(id)
        } else if (state === 'ended') break
        else
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
      if (fault) throw fault
    },
  }
}

function unreadTooLarge(limit: number): CountersignError {
  const message = `More than ${limit} characters of events wait to be read. Read faster, or raise maxUnreadBytes.`
  return new CountersignError('event-too-large', message, { limit })
}
