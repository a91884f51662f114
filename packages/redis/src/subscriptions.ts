import { CountersignError } from '@countersign/core'
import { type RedisClient, withDeadline } from './redis.js'

/** A client of the package `redis` that is connected and can open a second connection; not a pool, not a cluster. */
export interface SubscribableClient extends RedisClient {
  duplicate(): Subscriber
}

type Listener = (message: string) => void

export interface Subscriber {
  connect(): Promise<unknown>
  subscribe(channel: string, listener: Listener): Promise<unknown>
  unsubscribe(channel: string, listener: Listener): Promise<unknown>
  on(event: 'error', listener: (error: unknown) => void): unknown
  unref(): void
  destroy(): void
}

export interface Subscriptions {
  /** Calls `listener` with each message until the function that comes back was called. Rejects with `ledger-unavailable`. */
  listen(channel: string, listener: Listener): Promise<() => Promise<void>>
  close(): void
}

/**
 * Messages over one connection of their own, which is opened when the first is listened for: a connection that listens can do nothing
 * else. It keeps no process alive.
 */
export function subscriptions(client: SubscribableClient, timeout: number): Subscriptions {
  if (typeof client?.duplicate !== 'function') {
    throw new CountersignError('invalid-option', 'The client must be able to duplicate() its connection.', {
      option: 'client',
    })
  }
  let connection: { readonly subscriber: Subscriber; readonly ready: Promise<unknown> } | undefined

  function open() {
    const subscriber = client.duplicate()
    // the client reconnects by itself and then listens again; what it complains of, the first client says as well
    subscriber.on('error', () => {})
    subscriber.unref()
    const opened = { subscriber, ready: subscriber.connect() }
    opened.ready.catch(() => {
      if (connection === opened) connection = undefined
    })
    return opened
  }

  return {
    listen: (channel, listener) =>
      withDeadline(timeout, async () => {
        connection ??= open()
        const { subscriber, ready } = connection
        await ready
        await subscriber.subscribe(channel, listener)
        return async () => {
          // a connection that is gone listens to nothing
          await subscriber.unsubscribe(channel, listener).catch(() => {})
        }
      }),
    close() {
      connection?.subscriber.destroy()
      connection = undefined
    },
  }
}
