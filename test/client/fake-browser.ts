import {
  ChatClient,
  type ChatClientOptions,
  type ChatSnapshot,
  type Connection,
  type Persistent,
} from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { tabs } from '@countersign/client/tabs'
import type { ThreadRecord } from '@countersign/core'
import { passMacrotasks } from '@countersign/testing'
import { onTestFinished } from 'vitest'

/** Keeps records as JSON text in memory. */
export interface MemoryPersistence extends Persistent {
  readonly texts: Map<string, string>
  saves: number
  /** What the next calls fail with. */
  failure: Error | undefined
}

export function memoryPersistence(): MemoryPersistence {
  const texts = new Map<string, string>()
  const check = async () => {
    await undefined
    if (persistence.failure) throw persistence.failure
  }
  const persistence: MemoryPersistence = {
    ...persistent({
      load: (threadId) => persistence.load(threadId),
      save: (threadId, record) => persistence.save(threadId, record),
      remove: (threadId) => persistence.remove(threadId),
    }),
    texts,
    saves: 0,
    failure: undefined,
    async load(threadId) {
      await check()
      const found = texts.get(threadId)
      return found === undefined ? undefined : (JSON.parse(found) as ThreadRecord)
    },
    async save(threadId, record) {
      const text = JSON.stringify(record)
      await check()
      persistence.saves++
      texts.set(threadId, text)
    },
    async remove(threadId) {
      await check()
      texts.delete(threadId)
    },
    async update(threadId, change) {
      const text = texts.get(threadId)
      const next = change(text === undefined ? undefined : JSON.parse(text))
      if (next) texts.set(threadId, JSON.stringify(next))
      else texts.delete(threadId)
      await check()
    },
  }
  return persistence
}

/** Web Locks and BroadcastChannel of one origin, counted; its tabs can be closed as a browser closes them. */
export class FakeBrowser {
  /** As for `tabs`. */
  timeout: number | undefined
  readonly persistence = memoryPersistence()
  readonly #channels = new Set<FakeChannel>()
  readonly #locks = new Map<string, Waiting[]>()

  get openChannels(): number {
    return this.#channels.size
  }

  /** Held and waited for. */
  get lockRequests(): number {
    return [...this.#locks.values()].reduce((sum, waiting) => sum + waiting.length, 0)
  }

  /** A tab with a client of the thread `t`, which shows it until it is closed. */
  open(connection: Connection, options: Partial<ChatClientOptions> = {}): FakeTab {
    const tab = new FakeTab(this, connection, options)
    onTestFinished(() => tab.close())
    return tab
  }

  /** Says something on the channel, as any script of the origin can. */
  say(data: unknown): void {
    for (const channel of this.#channels) channel.hear(data)
  }

  createChannel(name: string): FakeChannel {
    const channel = new FakeChannel(name, this.#channels)
    this.#channels.add(channel)
    return channel
  }

  request(
    name: string,
    signal: AbortSignal | undefined,
    hold: () => unknown,
  ): { done: Promise<void>; drop(): void } {
    const waiting = this.#locks.get(name) ?? []
    this.#locks.set(name, waiting)
    let settle: (error?: unknown) => void = () => {}
    const done = new Promise<void>((resolve, reject) => {
      settle = (error) => (error ? reject(error) : resolve())
    })
    const entry: Waiting = { hold, granted: false }
    const drop = () => {
      const at = waiting.indexOf(entry)
      if (at >= 0) waiting.splice(at, 1)
      settle()
      grant()
    }
    const grant = () => {
      const [first] = waiting
      if (!first || first.granted) return
      first.granted = true
      setImmediate(() => void first.start?.())
    }
    entry.start = async () => {
      if (!waiting.includes(entry)) return
      await entry.hold()
      drop()
    }
    signal?.addEventListener('abort', () => {
      if (entry.granted) return
      settle(new DOMException('aborted', 'AbortError'))
      drop()
    })
    waiting.push(entry)
    grant()
    return { done, drop }
  }
}

interface Waiting {
  readonly hold: () => unknown
  granted: boolean
  start?: () => Promise<void>
}

class FakeChannel extends EventTarget implements BroadcastChannel {
  readonly name: string
  onmessage: ((this: BroadcastChannel, event: MessageEvent) => unknown) | null = null
  onmessageerror = null
  readonly #all: Set<FakeChannel>

  constructor(name: string, all: Set<FakeChannel>) {
    super()
    this.name = name
    this.#all = all
  }

  postMessage(data: unknown): void {
    if (!this.#all.has(this)) throw new DOMException('closed', 'InvalidStateError')
    const message: unknown = structuredClone(data)
    for (const other of this.#all) if (other !== this && other.name === this.name) other.hear(message)
  }

  /** What is said to a tab while it is frozen. */
  frozen: unknown[] | undefined

  hear(data: unknown): void {
    setImmediate(() => {
      if (this.frozen) this.frozen.push(data)
      else if (this.#all.has(this)) this.onmessage?.(new MessageEvent('message', { data }))
    })
  }

  close(): void {
    this.#all.delete(this)
  }
}

export class FakeTab {
  readonly client: ChatClient
  readonly errors: string[] = []
  readonly #gone = new AbortController()
  readonly #held: (() => void)[] = []
  readonly #channels: FakeChannel[] = []

  constructor(browser: FakeBrowser, connection: Connection, options: Partial<ChatClientOptions>) {
    const { persistence } = browser
    const { signal } = this.#gone
    const self = this
    const kept = options.persistence ?? persistence
    this.client = new ChatClient({
      connection: mortal(connection, signal),
      threadId: 't',
      onError: ({ code }) => this.errors.push(code),
      notify: 'sync',
      ...options,
      persistence: persistent({
        load: (threadId) => kept.load(threadId),
        save: (threadId, record) => (signal.aborted ? never() : kept.save(threadId, record)),
        remove: (threadId) => kept.remove(threadId),
      }),
      tabs: tabs({
        ...(browser.timeout && { timeout: browser.timeout }),
        locks: {
          async request(name: string, ...rest: unknown[]) {
            const [given, hold] = rest.length === 1 ? [{}, rest[0]] : rest
            const wanted = given as LockOptions
            const { done, drop } = browser.request(name, wanted.signal, hold as () => unknown)
            self.#held.push(drop)
            return done
          },
        } as Pick<LockManager, 'request'>,
        BroadcastChannel: class {
          constructor(name: string) {
            const channel = browser.createChannel(name)
            self.#channels.push(channel)
            // biome-ignore lint/correctness/noConstructorReturn: stands for the platform's own class
            return channel
          }
        } as unknown as typeof BroadcastChannel,
      }),
    })
    this.client.attach()
  }

  /** The browser freezes the tab: it hears nothing, and keeps its lock. */
  freeze(): void {
    for (const channel of this.#channels) channel.frozen ??= []
  }

  /** It hears everything that was said meanwhile. */
  thaw(): void {
    for (const channel of this.#channels) {
      const said = channel.frozen ?? []
      channel.frozen = undefined
      for (const data of said) channel.hear(data)
    }
  }

  /** The browser closes the tab: it says and saves nothing any more, its lock is free, its connection is cut. */
  close(): void {
    if (this.#gone.signal.aborted) return
    this.#gone.abort()
    for (const channel of this.#channels) channel.close()
    for (const drop of this.#held) drop()
  }
}

const never = () => new Promise<never>(() => {})

/** Ends with its tab: the server sees that nobody listens, and the client hears nothing more. */
function mortal(connection: Connection, gone: AbortSignal): Connection {
  return {
    ...connection,
    async *connect(input, options) {
      if (gone.aborted) await never()
      const events = connection.connect(input, {
        ...options,
        signal: AbortSignal.any([options.signal, gone]),
      })
      for await (const event of events) {
        if (gone.aborted) await never()
        yield event
      }
      if (gone.aborted) await never()
    },
  }
}

/** What is shown, without identities: errors by code and message. */
export function shown(client: ChatClient): unknown {
  const { error, ...rest }: ChatSnapshot = client.getSnapshot()
  return JSON.parse(JSON.stringify({ ...rest, error: error && [error.code, error.message, error.data] }))
}

/** Waits until nothing is said on the channel any more. */
export async function quiet(): Promise<void> {
  await passMacrotasks(12)
}
