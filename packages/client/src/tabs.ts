import {
  type AGUIEvent,
  CountersignError,
  isCountersignError,
  isRecord,
  isThreadRecord,
  type LocalAct,
} from '@countersign/core'
import type { TabHost, TabLink, Tabs } from './tabs/link.js'

export type { TabHost, TabLink, Tabs } from './tabs/link.js'

/** Options of {@link tabs}. The defaults are the platform's own; give others in tests. */
export interface TabsOptions {
  /** Prefix of the names of the channel and the lock. Default `countersign:`. */
  prefix?: string | undefined
  locks?: LockManager | undefined
  BroadcastChannel?: typeof globalThis.BroadcastChannel | undefined
}

/**
 * Several tabs show one conversation. One of them leads (it holds a Web Lock): it runs the streams and saves. The others see every
 * step it takes, and hand it what their person does (BroadcastChannel). When it closes, the next one leads. Where the platform lacks
 * either, each tab is for itself.
 *
 * @example new ChatClient({ connection, threadId, persistence: indexedDb(), tabs: tabs() })
 */
export function tabs(options: TabsOptions = {}): Tabs {
  return {
    join(host) {
      const locks = options.locks ?? globalThis.navigator?.locks
      const Channel = options.BroadcastChannel ?? globalThis.BroadcastChannel
      if (!locks || !Channel) return alone
      const name = `${options.prefix ?? 'countersign:'}${host.threadId}`
      return joinTabs(host, new Channel(name), locks, name)
    },
  }
}

const alone: TabLink = {
  ready: Promise.resolve(),
  leads: true,
  forward: () => Promise.reject(new CountersignError('invalid-argument', 'There is no other tab.')),
  stepped: () => {},
  leave: () => {},
}

type Step = AGUIEvent | LocalAct

/** What tabs tell one another. `v` is the version of this form; other versions are not understood and not acted on. */
type Post =
  /** A tab is here and wants to see what there is. */
  | { readonly v: 1; readonly type: 'hello'; readonly from: string }
  | {
      readonly v: 1
      readonly type: 'state'
      readonly to: string
      readonly at: number
      readonly state: unknown
    }
  | { readonly v: 1; readonly type: 'steps'; readonly at: number; readonly steps: readonly unknown[] }
  | {
      readonly v: 1
      readonly type: 'act'
      readonly id: string
      readonly act: string
      readonly value: unknown
    }
  | { readonly v: 1; readonly type: 'done'; readonly id: string; readonly result: unknown }
  /** A tab leads from now on. */
  | { readonly v: 1; readonly type: 'lead' }

interface Forwarded {
  readonly act: string
  readonly value: unknown
  resolve(result: unknown): void
}

function joinTabs(host: TabHost, channel: BroadcastChannel, locks: LockManager, name: string): TabLink {
  const self = crypto.getRandomValues(new Uint32Array(4)).join('-')
  const leaving = new AbortController()
  const forwarded = new Map<string, Forwarded>()
  let leads = false
  /** The number of steps the leader has told of; a follower that misses one asks for the whole again. */
  let at = -1
  let watched = false
  let outbox: Step[] = []
  let count = 0
  let becomeReady: () => void
  const ready = new Promise<void>((resolve) => {
    becomeReady = resolve
  })

  const post = (message: Post) => channel.postMessage(plain(message))

  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (isPost(data)) receive(data)
  }

  function receive(message: Post): void {
    switch (message.type) {
      case 'hello':
        if (leads) welcome(message.from)
        return
      case 'state':
        if (!leads && message.to === self) show(message)
        return
      case 'steps':
        if (!leads) follow(message)
        return
      case 'act':
        if (leads) void perform(message)
        return
      case 'done':
        finish(message)
        return
      case 'lead':
        if (!leads) askAnew()
        return
      default:
        message satisfies never
    }
  }

  function welcome(to: string): void {
    tell()
    watched = true
    post({ v: 1, type: 'state', to, at, state: host.capture() })
  }

  function show(message: Extract<Post, { type: 'state' }>): void {
    const state = decodeState(message.state)
    if (!state) return
    at = message.at
    host.mirror(state)
    becomeReady()
  }

  function follow(message: Extract<Post, { type: 'steps' }>): void {
    if (at < 0) return
    if (message.at !== at + 1) {
      askAnew()
      return
    }
    at = message.at
    host.follow(message.steps.map(decodeStep).filter((step) => step !== undefined))
  }

  async function perform({ id, act, value }: Extract<Post, { type: 'act' }>): Promise<void> {
    const result = await host.perform(act, value)
    tell()
    post({ v: 1, type: 'done', id, result })
  }

  function finish({ id, result }: Extract<Post, { type: 'done' }>): void {
    forwarded.get(id)?.resolve(decodeValue(result))
    forwarded.delete(id)
  }

  /** A new leader: see what it has, and hand it what the old one may not have done. Acts are told apart by their ids. */
  function askAnew(): void {
    at = -1
    post({ v: 1, type: 'hello', from: self })
    for (const [id, { act, value }] of forwarded) post({ v: 1, type: 'act', id, act, value })
  }

  /** Steps of one turn of the event loop go out together. */
  function tell(): void {
    if (outbox.length === 0) return
    const steps = outbox
    outbox = []
    at++
    if (watched) post({ v: 1, type: 'steps', at, steps })
  }

  function lead(): void {
    const followed = at >= 0
    leads = true
    at = Math.max(at, 0)
    post({ v: 1, type: 'lead' })
    if (followed) host.takeOver()
    becomeReady()
    for (const [id, { act, value, resolve }] of forwarded) {
      forwarded.delete(id)
      void host.perform(act, value).then(resolve)
    }
  }

  /** Holds the lock until this tab leaves or closes. */
  const holding = () =>
    new Promise<void>((release) => {
      lead()
      leaving.signal.addEventListener('abort', () => release(), { once: true })
    })

  const wait = () => locks.request(name, { signal: leaving.signal }, holding).catch(() => {})
  void locks.request(name, { ifAvailable: true }, (lock) => {
    if (leaving.signal.aborted) return undefined
    if (lock) return holding()
    void wait()
    post({ v: 1, type: 'hello', from: self })
    return undefined
  })

  return {
    ready,
    get leads() {
      return leads
    },
    forward: (act, value) =>
      new Promise((resolve) => {
        const id = `${self}:${++count}`
        forwarded.set(id, { act, value, resolve })
        post({ v: 1, type: 'act', id, act, value })
      }),
    stepped(step) {
      if (!leads) return
      if (outbox.push(step) === 1) queueMicrotask(tell)
    },
    leave() {
      tell()
      leads = false
      leaving.abort()
      channel.close()
      becomeReady()
    },
  }
}

/** Structured clone takes no functions and loses classes; what is sent is JSON by construction. */
function plain(message: Post): unknown {
  return JSON.parse(
    JSON.stringify(message, (_, value: unknown) => (isCountersignError(value) ? encodeError(value) : value)),
  )
}

function encodeError({ code, message, data }: CountersignError): unknown {
  return { 'countersign.error': true, code, message, data }
}

function decodeError(value: unknown): CountersignError | undefined {
  if (!isRecord(value) || value['countersign.error'] !== true) return undefined
  const data = isRecord(value.data) ? value.data : {}
  return new CountersignError(value.code as CountersignError['code'], String(value.message), data)
}

function decodeState(value: unknown): Parameters<TabHost['mirror']>[0] | undefined {
  if (!isRecord(value) || !isThreadRecord(value.record)) return undefined
  const { record, open } = value
  const error = decodeError(value.error)
  const known =
    isRecord(open) &&
    typeof open.runId === 'string' &&
    (open.phase === 'submitted' || open.phase === 'streaming')
  return {
    record,
    ...(known && {
      open: { phase: open.phase === 'submitted' ? 'submitted' : 'streaming', runId: String(open.runId) },
    }),
    ...(error && { error }),
  }
}

/** Steps come from a tab of the same origin that runs the same code; what has not even the form of one is left out. */
function decodeStep(value: unknown): Step | undefined {
  if (!isRecord(value) || typeof value.type !== 'string') return undefined
  return decodeValue(value) as Step
}

/** Gives the errors in a value their class back, wherever a step or a result has one. */
function decodeValue(value: unknown): unknown {
  if (!isRecord(value)) return value
  const error = decodeError(value)
  if (error) return error
  const entries = Object.entries(value).map(([key, member]) => {
    const nested = key === 'error' || key === 'end' ? decodeValue(member) : member
    return [key, nested] as const
  })
  return Object.fromEntries(entries)
}

function isPost(value: unknown): value is Post {
  if (!isRecord(value) || value.v !== 1) return false
  const { type, from, to, at, id, act, steps } = value
  switch (type) {
    case 'hello':
      return typeof from === 'string'
    case 'state':
      return typeof to === 'string' && typeof at === 'number'
    case 'steps':
      return typeof at === 'number' && Array.isArray(steps)
    case 'act':
      return typeof id === 'string' && typeof act === 'string'
    case 'done':
      return typeof id === 'string'
    case 'lead':
      return true
    default:
      return false
  }
}
