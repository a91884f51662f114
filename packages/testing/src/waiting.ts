import type { ChatClient, ChatSnapshot, ToolMap } from '@countersign/client'
import { scriptErrorOf } from './script-error.js'

// Captured at load, so that fake timers do not stop the script itself.
const { setTimeout: later, clearTimeout: never } = globalThis
/** The next turn of the event loop; a timer of 0 ms would take a whole millisecond. */
const nextTurn: (done: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : (done) => later(done, 0)

/** Waits for that many microtasks. */
export async function microtasks(count = 1): Promise<void> {
  for (let i = 0; i < count; i++) await undefined
}

/** Waits for that many turns of the event loop. */
export async function macrotasks(count = 1): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise<void>(nextTurn)
}

/** Waits for that many milliseconds, even with fake timers. */
export function pass(ms: number): Promise<void> {
  return new Promise((done) => later(done, ms))
}

/** A promise that is resolved from outside. */
export interface Gate {
  readonly opened: Promise<void>
  open(): void
}

export function createGate(): Gate {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

/** Settles like `promise`, or rejects with the text of `explain` after `ms` milliseconds. */
export function within<T>(ms: number, promise: Promise<T>, explain: () => string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = later(() => reject(new Error(explain())), ms)
    promise.then(resolve, reject).finally(() => never(timer))
  })
}

/**
 * Resolves with the first snapshot that fulfils `condition`, which may be the current one. Fails at once when a scripted connection
 * has run out of script, and after `ms` milliseconds, showing the state that was reached. The default of 30 s only catches hangs; pass less if your test runner has a shorter timeout.
 *
 * @example await until(client, ({ status }) => status === 'ready')
 */
export function until<Tools extends ToolMap>(
  client: ChatClient<Tools>,
  condition: (snapshot: ChatSnapshot<Tools>) => boolean,
  ms = 30_000,
): Promise<ChatSnapshot<Tools>> {
  let leave = (): void => {}
  const met = new Promise<ChatSnapshot<Tools>>((resolve, reject) => {
    const look = () => {
      const snapshot = client.getSnapshot()
      if (condition(snapshot)) return resolve(snapshot)
      // Nothing more can come: waiting on would only hide the reason.
      const early = scriptErrorOf(snapshot)
      if (early) reject(early)
    }
    leave = client.subscribe(look)
    look()
  })
  const explain = () =>
    `The chat did not reach: ${condition}\nIt is:\n${JSON.stringify(client.getSnapshot(), null, 2)}`
  return within(ms, met, explain).finally(leave)
}
