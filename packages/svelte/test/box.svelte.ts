/** A reactive variable for tests, which are no components. */
export interface Box<T> {
  current: T
}

export function box<T>(first: T): Box<T> {
  let value = $state.raw(first)
  return {
    get current() {
      return value
    },
    set current(next) {
      value = next
    },
  }
}
