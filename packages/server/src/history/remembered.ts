import { frozen } from '@countersign/core'

/**
 * A function that is called once for each frozen object: its result is frozen too, and remembered as long as the object is in memory. The
 * messages of stored conversations are frozen and stay between requests. Any other object may change, so nothing is remembered of it.
 */
export function remembered<Of extends object, Result>(make: (of: Of) => Result): (of: Of) => Result {
  const results = new WeakMap<Of, { readonly result: Result }>()
  return (of) => {
    const known = results.get(of)
    if (known !== undefined) return known.result
    const result = make(of)
    if (Object.isFrozen(of)) results.set(of, { result: frozen(result) })
    return result
  }
}
