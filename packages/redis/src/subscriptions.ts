import { setTimeout as pause } from 'node:timers/promises'
import { CountersignError } from '@countersign/core'
import { type RedisClient, withDeadline } from './redis.js'

/** A connected client of the package `redis` that can open a second connection; not a pool, not a cluster. */
export interface SubscribableClient extends RedisClient {
  duplicate(): Subscriber
}

type Listener = (message: string) => void

export interface Subscriber {
  readonly isOpen: boolean
  connect(): Promise<unknown>
  subscribe(channel: string, listener: Listener): Promise<unknown>
  unsubscribe(channel: string, listener: Listener): Promise<unknown>
  on(event: 'error', listener: (error: unknown) => void): unknown
  unref(): void
  destroy(): void
}

export interface Subscriptions {
  /** Calls `listener` with each message until the returned function is called. Rejects with `ledger-unavailable`. */
  listen(channel: string, listener: Listener): Promise<() => Promise<void>>
  close(): void
}

interface Connection {
  readonly subscriber: Subscriber
  ready: Promise<unknown>
  listening: number
  isGivenUp: boolean
}

/** How long to wait before reconnecting a connection that the client has given up. */
const AGAIN_MS = 1000

/**
 * Messages over their own connection, opened for the first listener: a connection that listens can do nothing
 * else. It does not keep the process alive. As long as somebody listens, it is reconnected, even if the client's `reconnectStrategy` gives
 * up: listeners would otherwise wait forever.
 */
export function subscriptions(client: SubscribableClient, timeout: number): Subscriptions {
  if (typeof client?.duplicate !== 'function') {
    throw new CountersignError('invalid-option', 'The client must be able to duplicate() its connection.', {
      option: 'client',
    })
  }
  let connection: Connection | undefined

  function open(): Connection {
    const subscriber = client.duplicate()
    // The client reconnects by itself and then listens again; the first client reports the same errors.
    subscriber.on('error', (error) => {
      if (!subscriber.isOpen) void takeUp(opened, error)
    })
    subscriber.unref()
    const opened: Connection = { subscriber, ready: subscriber.connect(), listening: 0, isGivenUp: false }
    opened.ready.catch(() => {
      if (connection === opened) connection = undefined
    })
    return opened
  }

  /** Reconnects. A client that is connected again listens to the same channels as before. */
  async function takeUp(opened: Connection, error: unknown): Promise<void> {
    if (opened.isGivenUp) return
    opened.isGivenUp = true
    for (let cause = error; connection === opened; ) {
      opened.ready = Promise.reject(givenUp(cause))
      opened.ready.catch(() => {})
      if (opened.listening === 0) connection = undefined
      else await pause(AGAIN_MS, undefined, { ref: false })
      if (connection !== opened) return
      try {
        opened.ready = Promise.resolve(await opened.subscriber.connect())
        opened.isGivenUp = !opened.subscriber.isOpen
        if (!opened.isGivenUp) return
      } catch (again) {
        cause = again
      }
    }
  }

  return {
    listen: (channel, listener) =>
      withDeadline(timeout, async (late) => {
        connection ??= open()
        const listened = connection
        const { subscriber } = listened
        await listened.ready
        late.throwIfAborted()
        await subscriber.subscribe(channel, listener)
        listened.listening++
        return async () => {
          listened.listening--
          // A lost connection listens to nothing.
          await subscriber.unsubscribe(channel, listener).catch(() => {})
        }
      }),
    close() {
      connection?.subscriber.destroy()
      connection = undefined
    },
  }
}

function givenUp(cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new Error(
    `the client has given up the connection that listens (${reason}); it is tried again every second.`,
    { cause },
  )
}
