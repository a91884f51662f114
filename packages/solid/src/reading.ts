import { type Accessor, createEffect, createMemo, createSignal, onCleanup, sharedConfig } from 'solid-js'

/** A value, or an accessor of it that is followed. */
export type MaybeAccessor<T> = T | Accessor<T>

export function access<T extends object | string>(given: MaybeAccessor<T>): T {
  return typeof given === 'function' ? (given as Accessor<T>)() : given
}

/**
 * What `read` gives, read again when `subscribe` tells of a change or when a signal that either of them reads has changed. A server, and
 * a page while it hydrates, read what was there in the beginning. Effects do not run on a server: there nothing is subscribed to.
 */
export function createReading<T>(
  subscribe: (changed: () => void) => () => void,
  read: (inTheBeginning: boolean) => T,
): Accessor<T> {
  const [inTheBeginning, turn] = createSignal(sharedConfig.context !== undefined, { equals: false })
  const changed = () => void turn(false)
  createEffect(() => {
    onCleanup(subscribe(changed))
    changed()
  })
  return createMemo(() => read(inTheBeginning()))
}
