import type { ChatSnapshot, ToolMap } from '@countersign/core'

/**
 * Selects a part of a snapshot and returns the same value while it is equal, so that views that depend on it
 * do not update. The selector forms of all bindings use it.
 */
export function createSelection<Tools extends ToolMap, T>(
  getSnapshot: () => ChatSnapshot<Tools>,
): (select: (snapshot: ChatSnapshot<Tools>) => T, equal?: (a: T, b: T) => boolean) => T {
  let last: { snapshot: ChatSnapshot<Tools>; select: unknown; value: T } | undefined
  return (select, equal = Object.is) => {
    const snapshot = getSnapshot()
    if (last?.snapshot === snapshot && last.select === select) return last.value
    const value = select(snapshot)
    last = { snapshot, select, value: last && equal(last.value, value) ? last.value : value }
    return last.value
  }
}
