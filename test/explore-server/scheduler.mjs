// Every wait of the server's is a point at which this scheduler decides who goes on. Nothing here depends on real time.
import { AsyncLocalStorage } from 'node:async_hooks'

const realImmediate = globalThis.setImmediate
const actors = new AsyncLocalStorage()

/** Whoever runs: an actor of a world, or nobody while a world is set up. */
export const current = () => actors.getStore()

/** The actors of one world, what each of them waits for, and the timers of their processes. */
export class Scheduler {
  now = 1_800_000_000_000
  #parked = []
  #timers = new Map()
  #timerId = 0
  #dead = new Set()
  #actors = []

  /** Runs `work` as an actor of a process. It begins when the scheduler lets it. */
  spawn(name, process, work) {
    const actor = { name, process, scheduler: this, trace: [], done: false, error: undefined }
    this.#actors.push(actor)
    actors.run(actor, () => {
      void (async () => {
        await this.point('begin')
        await work(actor)
      })().then(
        () => {
          actor.done = true
        },
        (error) => {
          actor.done = true
          actor.error = error
        },
      )
    })
    return actor
  }

  /** Waits until the scheduler lets this actor go on. Outside of actors it does not wait. */
  async point(label) {
    const actor = current()
    if (actor?.scheduler !== this) return
    await new Promise((resolve) => {
      if (!this.#dead.has(actor.process)) this.#parked.push({ actor, label, resolve })
    })
    actor.trace.push(label)
  }

  /** What has come back of a point, where it decides what the actor does next. */
  note(value) {
    current()?.trace.push(`=${value}`)
  }

  /** The process is gone: nobody in it goes on. */
  crash(process) {
    this.#dead.add(process)
    this.#parked = this.#parked.filter(({ actor }) => actor.process !== process)
    for (const [id, timer] of this.#timers) if (timer.actor.process === process) this.#timers.delete(id)
  }

  get unfinished() {
    return this.#actors.filter(({ done, process }) => !done && !this.#dead.has(process))
  }

  get failed() {
    return this.#actors.filter(({ error }) => error !== undefined)
  }

  isDead(process) {
    return this.#dead.has(process)
  }

  /** Who can go on: parked actors, and timers whose time has come. */
  actions() {
    const parked = this.#parked.map(({ actor, label }, index) => ({
      name: `${actor.name}: ${label}`,
      act: () => this.#release(index),
    }))
    const due = [...this.#timers].filter(([, timer]) => timer.due <= this.now)
    const timers = due.map(([id, { actor, label }]) => ({
      name: `${actor.name}: timer ${label}`,
      act: () => this.#fire(id),
    }))
    return [...parked, ...timers]
  }

  /** When the next timer is due; nothing where there is none. */
  get nextDue() {
    return this.#timers.size === 0 ? undefined : Math.min(...[...this.#timers.values()].map(({ due }) => due))
  }

  /** Time goes on to the next timer, which fires. */
  tick() {
    const next = [...this.#timers].sort(([a, one], [b, other]) => one.due - other.due || a - b)[0]
    if (next === undefined) return
    this.now = Math.max(this.now, next[1].due)
    this.#fire(next[0])
  }

  /** All that decides what comes next, as far as this scheduler knows it. */
  state() {
    const timers = [...this.#timers.values()].map(
      ({ actor, label, due }) => `${actor.name} ${label} ${due - this.now}`,
    )
    return JSON.stringify([
      this.now,
      this.#actors.map(({ name, trace, done }) => [name, done, trace]),
      this.#parked.map(({ actor, label }) => `${actor.name} ${label}`).sort(),
      timers.sort(),
      [...this.#dead],
    ])
  }

  setTimer(label, work, ms, every) {
    const id = ++this.#timerId
    this.#timers.set(id, { actor: current(), label, work, due: this.now + ms, every })
    return id
  }

  clearTimer(id) {
    this.#timers.delete(id)
  }

  #release(index) {
    const [{ resolve }] = this.#parked.splice(index, 1)
    resolve()
  }

  #fire(id) {
    const timer = this.#timers.get(id)
    if (timer.every === undefined) this.#timers.delete(id)
    else timer.due = this.now + timer.every
    actors.run(timer.actor, timer.work)
  }
}

/** Until nothing happens any more but what the scheduler lets happen. */
export async function quiet() {
  // results of `subtle` are remembered (see below), so that the only other source of work is the first use of a key
  do {
    await new Promise((resolve) => realImmediate(resolve))
  } while (inFlight > 0)
}

let inFlight = 0

/** Puts timers of actors, and the cost of cryptography, into the scheduler's hands. The function that comes back undoes it. */
export function takeOver() {
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis
  const { timeout, any } = AbortSignal
  const handle = (id) => ({ explored: id, unref() {}, ref() {} })
  const set =
    (real, every) =>
    (work, ms = 0, ...values) => {
      const actor = current()
      if (actor === undefined) return real(work, ms, ...values)
      const run = () => work(...values)
      return handle(actor.scheduler.setTimer(every ? 'renewal' : 'pause', run, ms, every ? ms : undefined))
    }
  const clear = (real) => (timer) => {
    const actor = current()
    if (timer?.explored === undefined) return real(timer)
    ;(actor?.scheduler ?? clearing)?.clearTimer(timer.explored)
  }
  globalThis.setTimeout = set(setTimeout, false)
  globalThis.setInterval = set(setInterval, true)
  globalThis.clearTimeout = clear(clearTimeout)
  globalThis.clearInterval = clear(clearInterval)
  AbortSignal.timeout = (ms) => {
    const actor = current()
    if (actor === undefined) return timeout.call(AbortSignal, ms)
    const controller = new AbortController()
    actor.scheduler.setTimer('deadline', () => controller.abort(), ms)
    return controller.signal
  }
  // Node keeps a combined signal while it has listeners, and with it every world that was cut short. The server has its own for runtimes without.
  AbortSignal.any = undefined
  const restoreSubtle = rememberSubtle()
  return () => {
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval })
    Object.assign(AbortSignal, { timeout, any })
    restoreSubtle()
  }
}

const clearing = undefined

/** The same question to `subtle` gets the same answer at once: no thread decides an order. */
function rememberSubtle() {
  const { subtle } = globalThis.crypto
  const ids = new Map()
  const idOf = (value) => {
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
      return Buffer.from(value.buffer ?? value).toString('base64')
    if (typeof value !== 'object' || value === null) return String(value)
    if (value instanceof CryptoKey) {
      if (!ids.has(value)) ids.set(value, ids.size)
      return `key ${ids.get(value)}`
    }
    return `{${Object.entries(value).map(([name, one]) => `${name}:${idOf(one)}`)}}`
  }
  const names = ['importKey', 'deriveKey', 'sign', 'verify', 'digest']
  const known = new Map()
  for (const name of names) {
    const real = subtle[name].bind(subtle)
    Object.defineProperty(subtle, name, {
      configurable: true,
      value: (...values) => {
        const key = [name, ...values.map(idOf)].join('|')
        if (!known.has(key)) {
          inFlight++
          const work = real(...values).finally(() => inFlight--)
          known.set(key, work)
        }
        return known.get(key)
      },
    })
  }
  return () => {
    for (const name of names) delete subtle[name]
  }
}
