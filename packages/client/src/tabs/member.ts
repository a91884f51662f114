import { CountersignError } from '@countersign/core'
import type { TabHost, TabLink } from './link.js'
import { type Post, readPost, type Step, writePost } from './post.js'

/** The role of a tab. `at` counts posts of steps: a follower that misses one asks for the complete state again. */
type Role =
  /** It has not received any state yet. */
  | { readonly as: 'newcomer' }
  | { readonly as: 'follower'; readonly leader: string; readonly at: number }
  /** About to lead; loads what is stored. */
  | { readonly as: 'heir' }
  | { readonly as: 'leader' }
  | { readonly as: 'gone' }

/** A command forwarded to the leader. */
interface Forwarded {
  readonly name: string
  readonly value: unknown
  /** Gives it up if no tab has started it. */
  timer?: ReturnType<typeof setTimeout>
  resolve(result: unknown): void
}

/** Joins the tabs that share `name`, the name of both channel and lock: the holder of the lock leads. */
export function joinTabs(
  host: TabHost,
  channel: BroadcastChannel,
  locks: Pick<LockManager, 'request'>,
  name: string,
  timeout: number,
): TabLink {
  const self = crypto.getRandomValues(new Uint32Array(4)).join('-')
  const leaving = new AbortController()
  /** The commands that this tab has forwarded. */
  const forwarded = new Map<string, Forwarded>()
  /** The commands of all tabs that a leader has started and not finished. */
  const taken = new Set<string>()
  /** Those whose leader is gone: their outcome stays unknown. */
  const broken = new Set<string>()
  let role: Role = { as: 'newcomer' }
  let at = 0
  let outbox: Step[] = []
  let newlyTaken: string[] = []
  let count = 0
  let becomeReady: () => void = () => {}
  const ready = new Promise<void>((resolve) => {
    becomeReady = resolve
  })
  /** The leading tab does not respond: reported once, until it is heard from again. */
  let silent = false
  // The leading tab may be frozen; then this one shows what is stored.
  const waiting = setTimeout(() => void host.load().then(becomeReady), timeout)
  void ready.then(() => clearTimeout(waiting))

  function post(message: Post): void {
    if (role.as !== 'gone') channel.postMessage(writePost(message))
  }

  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    const message = readPost(data)
    if (message) receive(message)
  }

  function receive(message: Post): void {
    if (message.type !== 'hello' && message.type !== 'command') silent = false
    switch (message.type) {
      case 'hello':
        if (role.as === 'leader') welcome(message.from)
        return
      case 'lead':
        if (role.as === 'newcomer' || role.as === 'follower') sayHello()
        return
      case 'state':
        if (message.to === self && (role.as === 'newcomer' || role.as === 'follower')) show(message)
        return
      case 'steps':
        if (role.as === 'follower' && role.leader === message.from) follow(message, role.at)
        return
      case 'command':
        if (role.as === 'leader') void perform(message)
        return
      case 'done':
        finish(message.id, message.result)
        return
      default:
        message satisfies never
    }
  }

  function sayHello(): void {
    post({ type: 'hello', from: self })
  }

  function welcome(to: string): void {
    tell()
    post({ type: 'state', from: self, to, at, state: host.capture(), taken: [...taken] })
  }

  function show(message: Extract<Post, { type: 'state' }>): void {
    const isNew = role.as !== 'follower' || role.leader !== message.from
    role = { as: 'follower', leader: message.from, at: message.at }
    host.mirror(message.state)
    if (isNew) switchTo(new Set(message.taken))
    becomeReady()
  }

  /** Another tab leads: commands started by the previous one are broken, others are forwarded again. */
  function switchTo(begun: ReadonlySet<string>): void {
    for (const id of taken) if (!begun.has(id)) finish(id, closedResult())
    for (const id of begun) taken.add(id)
    for (const [id, asked] of forwarded) if (!taken.has(id)) ask(id, asked)
  }

  /** A tab that was frozen must not start a command that was given up, so it may start it only in the first half of the timeout. */
  function ask(id: string, asked: Forwarded): void {
    const { name, value } = asked
    clearTimeout(asked.timer)
    asked.timer = setTimeout(() => giveUp(id, name), timeout)
    post({ type: 'command', from: self, id, name, value, until: Math.ceil(Date.now() + timeout / 2) })
  }

  function giveUp(id: string, command: string): void {
    if (taken.has(id)) return
    const error = silentError()
    if (!silent) host.failed(error)
    silent = true
    finish(id, { status: command === 'send' || command === 'regenerate' ? 'refused' : 'failed', error })
  }

  function follow(message: Extract<Post, { type: 'steps' }>, last: number): void {
    for (const id of message.taken) taken.add(id)
    if (message.at <= last) return
    if (message.at > last + 1) {
      sayHello()
      return
    }
    role = { as: 'follower', leader: message.from, at: message.at }
    try {
      host.follow(message.steps)
    } catch {
      sayHello()
    }
  }

  /** A command starts only once, although its tab forwards it again when another tab leads. */
  async function perform({ id, name, value, until }: Extract<Post, { type: 'command' }>): Promise<void> {
    if (taken.has(id) || (until !== undefined && Date.now() > until)) return
    if (broken.has(id)) {
      post({ type: 'done', from: self, id, result: closedResult() })
      return
    }
    taken.add(id)
    newlyTaken.push(id)
    queueMicrotask(tell)
    const result = await host.perform(name, value)
    taken.delete(id)
    tell()
    post({ type: 'done', from: self, id, result })
  }

  function finish(id: string, result: unknown): void {
    taken.delete(id)
    const asked = forwarded.get(id)
    clearTimeout(asked?.timer)
    asked?.resolve(result)
    forwarded.delete(id)
  }

  /** Sends the steps of one turn of the event loop together. */
  function tell(): void {
    if (role.as !== 'leader' || (outbox.length === 0 && newlyTaken.length === 0)) return
    const [steps, begun] = [outbox, newlyTaken]
    outbox = []
    newlyTaken = []
    post({ type: 'steps', from: self, at: ++at, steps, taken: begun })
  }

  async function lead(): Promise<void> {
    const followed = role.as === 'follower'
    if (!followed) {
      role = { as: 'heir' }
      await host.load()
      if (leaving.signal.aborted) return
    }
    role = { as: 'leader' }
    // Else a command would open another run before the one that was left is rejoined.
    const rejoined = followed ? host.takeOver(closedError()) : host.rejoin()
    post({ type: 'lead', from: self })
    for (const id of [...taken]) {
      broken.add(id)
      finish(id, closedResult())
    }
    await rejoined
    if (leaving.signal.aborted) return
    becomeReady()
    performOwn()
  }

  /** Performs this tab's forwarded commands itself. */
  function performOwn(): void {
    for (const [id, { name, value, timer }] of [...forwarded]) {
      clearTimeout(timer)
      void host.perform(name, value).then((result) => finish(id, result))
    }
  }

  /** Holds the lock until this tab leaves or closes. */
  function hold(): Promise<void> {
    void lead()
    return new Promise((release) => {
      if (leaving.signal.aborted) release()
      leaving.signal.addEventListener('abort', () => release(), { once: true })
    })
  }

  sayHello()
  locks.request(name, { signal: leaving.signal }, hold).catch(() => {
    // The platform has locks but grants none, for example to a frame with an opaque origin: this tab works alone.
    if (!leaving.signal.aborted) void lead()
  })

  return {
    ready,
    get leads() {
      return role.as === 'leader'
    },
    forward: (name, value) =>
      new Promise((resolve) => {
        if (role.as === 'gone') return resolve(host.perform(name, value))
        const id = `${self}:${++count}`
        const asked = { name, value, resolve }
        forwarded.set(id, asked)
        ask(id, asked)
      }),
    stepped(step) {
      if (role.as !== 'leader') return
      if (outbox.push(step) === 1) queueMicrotask(tell)
    },
    leave() {
      tell()
      // Whether another tab carries them out can't be known here any more.
      if (role.as === 'follower')
        for (const id of [...forwarded.keys()]) finish(id, { status: 'failed', error: leftError() })
      role = { as: 'gone' }
      leaving.abort()
      channel.close()
      becomeReady()
      // Remaining commands belong to a client that was disposed, which settles them.
      performOwn()
    },
  }
}

function closedError(): CountersignError {
  const message = 'The tab that ran this conversation was closed. Try again to go on.'
  return new CountersignError('connection-failed', message)
}

function leftError(): CountersignError {
  const message = 'This page left before another tab had told the outcome; look there.'
  return new CountersignError('connection-failed', message)
}

function silentError(): CountersignError {
  const message =
    'The tab that runs this conversation does not answer; perhaps the browser has frozen it. Nothing was done. Bring that tab to the front or close it, then try again.'
  return new CountersignError('connection-failed', message)
}

function closedResult(): unknown {
  return { status: 'failed', error: closedError() }
}
