import {
  type Accessor,
  createEffect,
  createMemo,
  createSignal,
  getOwner,
  onCleanup,
  runWithOwner,
  sharedConfig,
  untrack,
} from 'solid-js'

/** A value, or an accessor of it that is followed. */
export type MaybeAccessor<T> = T | Accessor<T>

export function access<T extends object | string>(given: MaybeAccessor<T>): T {
  return typeof given === 'function' ? (given as Accessor<T>)() : given
}

/**
 * What `read` gives, read again when `subscribe` tells of a change or when a signal that either of them reads has changed; whoever
 * depends on it is told when it is another. A server, and a page while it hydrates, read what was there in the beginning. Effects do not
 * run on a server: there nothing is subscribed to.
 */
export function createReading<T>(
  subscribe: (changed: () => void) => () => void,
  read: (inTheBeginning: boolean) => T,
): Accessor<T> {
  // A signal in a memo: a change goes straight to who depends on it, and the memo is for another client or id.
  const reading = createMemo(() => {
    const [value, set] = createSignal(read(sharedConfig.context !== undefined))
    // Who causes a change may be an effect, which must not come to depend on what is read.
    const changed = () => void set(() => untrack(() => read(false)))
    createEffect(() => {
      onCleanup(subscribe(changed))
      changed()
    })
    return value
  })
  return () => reading()()
}

/** The fields of what `read` gives, each a getter that tells only of its own changes. One that nobody reads costs nothing. */
export function createFields<T extends object>(read: Accessor<T>): T {
  const owner = getOwner()
  const names = Object.keys(untrack(read)) as (keyof T)[]
  const getters = names.map((name) => {
    let field: Accessor<T[typeof name]> | undefined
    const get = () => {
      field ??= runWithOwner(owner, () => createMemo(() => read()[name]))
      return field?.()
    }
    return [name, { enumerable: true, get }]
  })
  return Object.defineProperties({} as T, Object.fromEntries(getters))
}
