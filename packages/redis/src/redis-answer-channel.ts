import type { ResumeEntry } from '@countersign/core'
import type { AnswerChannel, AnswerContext, Delivery } from '@countersign/server'
import {
  checkOptions,
  endedRun,
  fairDeliveries,
  plainMembers,
  received,
} from '@countersign/server/ledger-kit'
import {
  digest,
  itemsOf,
  openRedis,
  type RedisOptions,
  redisRules,
  textOf,
  unguessable,
  withDeadline,
} from './redis.js'
import { type SubscribableClient, subscriptions } from './subscriptions.js'

export interface RedisAnswerChannel extends AnswerChannel {
  /** Closes the connection for messages; open runs receive no more answers. */
  close(): void
}

/** How long an open run is remembered if nobody closes it, because its process was killed. */
const OPEN_MS = 7 * 24 * 60 * 60 * 1000
/** How long a reply is kept for a sender whose connection broke. */
const REPLY_MS = 60_000
/** How often a sender checks for its reply, and whether the run still listens. */
const LOOK_MS = 1000

/** How long a run may hold an answer before it replies: its approval may not have been requested yet. `timeout` is added. */
const EARLY_MS = 10_000

/** KEYS: the run. ARGV: its channel, lifetime. */
const OPEN = `redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`

/** KEYS: the run. ARGV: its channel. A later run with the same name stays. */
const CLOSE = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1`

/** KEYS: the run. ARGV: a message. Returns the run's channel, if it listens. */
const DELIVER = `
local channel = redis.call('GET', KEYS[1])
if not channel or redis.call('PUBLISH', channel, ARGV[1]) == 0 then return false end
return channel`

/** KEYS: the reply. ARGV: the reply, lifetime, the channel of its receiver. */
const REPLY = `
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return 1`

/** KEYS: the reply. ARGV: the run's channel. Returns the reply, and the number of listeners. */
const LOOK = `
return { redis.call('GET', KEYS[1]), redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2] }`

/** KEYS: the reply, which its receiver has. */
const FORGET = `return redis.call('DEL', KEYS[1])`

interface Parcel {
  /** Identifies the reply. */
  readonly id: string
  readonly entries: readonly ResumeEntry[]
  readonly context: AnswerContext
}

/**
 * An answer channel in Redis: an answer that reaches one server is delivered to a run that is open on another. A run whose server was
 * killed is detected at once, because nobody listens any more. Of the context of whoever answers, `approvals.confirm` gets the plain
 * data: strings, numbers, booleans, null, plain objects and arrays, up to 16 Ki characters of JSON per member. It is sent through Redis
 * unencrypted, so keep secrets out of it.
 *
 * @throws CountersignError `invalid-option`
 */
export function redisAnswerChannel(
  client: SubscribableClient,
  options: RedisOptions = {},
): RedisAnswerChannel {
  checkOptions('redisAnswerChannel', options, redisRules)
  const redis = openRedis(client, options)
  const timeout = options.timeout ?? 5000
  const messages = subscriptions(client, timeout)
  const runName = (runKey: string) => `${redis.prefix}answers:${digest(runKey)}`
  const replyName = (id: string) => `${redis.prefix}reply:${id}`
  const ask = (script: string, key: string, values: readonly string[]) =>
    redis.within((one) => one(script, [key], values))

  const fairly = fairDeliveries()

  async function reply(id: string, delivery: Delivery): Promise<void> {
    const name = replyName(id)
    await ask(REPLY, name, [JSON.stringify(delivery), String(REPLY_MS), name])
  }

  /**
   * The reply, or that the run has ended if nobody is left to reply. A lost reply would never come.
   *
   * @throws CountersignError `ledger-unavailable`: it is unknown whether the run has the answer; it can be sent again.
   */
  const replyTo = (id: string, channel: string, came: Promise<string>) =>
    withDeadline(EARLY_MS + timeout, (stop) => lookFor(id, channel, came, stop))

  async function lookFor(
    id: string,
    channel: string,
    came: Promise<string>,
    stop: AbortSignal,
  ): Promise<Delivery> {
    for (let gone = false; ; ) {
      stop.throwIfAborted()
      const heard = await Promise.race([came, sleep(LOOK_MS)])
      if (heard !== undefined) return JSON.parse(heard)
      const [kept, listeners] = itemsOf(await ask(LOOK, replyName(id), [channel]))
      const text = textOf(kept)
      if (text !== undefined) return JSON.parse(text)
      // Checks again after the first miss: a connection may just be reconnecting.
      if (Number(listeners) === 0 && gone) return endedRun
      gone = Number(listeners) === 0
    }
  }

  async function send(
    runKey: string,
    entries: readonly ResumeEntry[],
    context: AnswerContext,
  ): Promise<Delivery> {
    const id = unguessable()
    let hear: (text: string) => void = () => {}
    const came = new Promise<string>((resolve) => {
      hear = resolve
    })
    const stop = await messages.listen(replyName(id), hear)
    let forget: Promise<unknown> | undefined
    try {
      const parcel: Parcel = { id, entries, context: plainMembers(context) }
      const channel = textOf(await ask(DELIVER, runName(runKey), [JSON.stringify(parcel)]))
      if (channel === undefined) return endedRun
      const delivery = await replyTo(id, channel, came)
      // However many are delivered, none of them stays. If this fails, the reply expires.
      forget = ask(FORGET, replyName(id), []).catch(() => {})
      return delivery
    } finally {
      await Promise.all([stop(), forget])
    }
  }

  return {
    async open(runKey, receive) {
      const channel = `${redis.prefix}listening:${unguessable()}`
      const stop = await messages.listen(channel, (message) => {
        const { id, entries, context }: Parcel = JSON.parse(message)
        // If the reply can't be sent, the sender of the answer times out.
        void received(receive, entries, context)
          .then((delivery) => reply(id, delivery))
          .catch(() => {})
      })
      try {
        await ask(OPEN, runName(runKey), [channel, String(OPEN_MS)])
      } catch (error) {
        await stop()
        throw error
      }
      return async () => {
        await stop()
        await ask(CLOSE, runName(runKey), [channel])
      }
    },

    deliver: (runKey, entries, context = {}) => fairly(runKey, () => send(runKey, entries, context)),

    close: messages.close,
  }
}

function sleep(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms))
}
