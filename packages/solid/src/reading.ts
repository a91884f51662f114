import {
  type Accessor,
  createEffect,
  createMemo,
  createRoot,
  createSignal,
  getOwner,
  onCleanup,
  runWithOwner,
  sharedConfig,
  untrack,
} from 'solid-js'

/** A value, or an accessor that is tracked. */
export type MaybeAccessor<T> = T | Accessor<T>

export function access<T extends object | string>(given: MaybeAccessor<T>): T {
  return typeof given === 'function' ? (given as Accessor<T>)() : given
}

/**
 * The result of `read`, updated when `subscribe` reports a change or a signal that either of them reads
 * changes; dependents update only if the result differs. A server, and a page while it hydrates, read the
 * initial value. Effects do not run on a server, so nothing is subscribed there.
 */
export function createReading<T>(
  subscribe: (changed: () => void) => () => void,
  read: (inTheBeginning: boolean) => T,
): Accessor<T> {
  // A signal in a memo: a change reaches dependents directly; the memo runs again only for another client or id.
  const reading = createMemo(() => {
    // Solid leaves `null` once a page is hydrated.
    const [value, set] = createSignal(read(Boolean(sharedConfig.context)))
    // Untracked: a change may be caused inside an effect, which must not depend on what is read here.
    const changed = () => void set(() => untrack(() => read(false)))
    startEffect(() => {
      onCleanup(subscribe(changed))
      changed()
    })
    return value
  })
  return () => reading()()
}

/** An effect that also runs below a suspended boundary. Solid's own effects wait there, while a shared store may be shown elsewhere. */
export function startEffect(effect: () => void): void {
  onCleanup(
    createRoot((end) => {
      createEffect(effect)
      return end
    }, null),
  )
}

/** The fields of `read()`, each a getter that is reactive on its own. A field that is never read costs nothing. */
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
