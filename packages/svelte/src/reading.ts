import type { ChatClient, ToolMap } from '@countersign/client'
import { untrack } from 'svelte'
import { createSubscriber } from 'svelte/reactivity'
import { toStore } from 'svelte/store'

/** A value as Svelte's own reactive classes hold one: always the present one; an effect that reads it runs again when it is another. */
export interface Reading<T> {
  readonly current: T
}

export function toReading<T>(get: () => T): Reading<T> {
  return {
    get current() {
      return get()
    },
  }
}

/** A getter by the getter that `open` makes for a key, as long as the key is the same. */
export function keepFor<Key, T>(getKey: () => Key, open: (key: Key) => () => T): () => T {
  let opened: { readonly key: Key; readonly get: () => T } | undefined
  return () => {
    const key = getKey()
    if (opened?.key !== key) opened = { key, get: open(key) }
    return opened.get()
  }
}

/** A getter of what `read` gives. While an effect uses it the page is attached; without one nothing is held. */
export function observe<Tools extends ToolMap, T>(
  client: ChatClient<Tools>,
  read: () => T,
  subscribe: (listener: () => void) => () => void = client.subscribe,
): () => T {
  const track = createSubscriber((update) => {
    let last = read()
    const leave = subscribe(() => {
      const next = read()
      if (Object.is(last, next)) return
      last = next
      update()
    })
    const detach = attachSoon(client)
    return () => {
      leave()
      detach()
    }
  })
  return () => {
    track()
    return read()
  }
}

/** Not at once: attaching may close what has expired, and a page must not change while it is rendered or hydrated. */
function attachSoon<Tools extends ToolMap>(client: ChatClient<Tools>): () => void {
  let detach: (() => void) | undefined
  let left = false
  queueMicrotask(() => {
    if (!left) detach = client.attach()
  })
  return () => {
    left = true
    detach?.()
  }
}

/**
 * A getter of what `find` finds. `follow` finds the same and may have effects: it runs now and, while an effect uses the getter, again when
 * something it reads has changed. The effect itself runs again only when another thing is found.
 */
export function createFinding<T>(find: () => T, follow: () => T): () => T {
  // A store made of a function is Svelte's public way to an effect in a file without runes.
  const followed = toStore(follow)
  const track = createSubscriber((update) => {
    let last = find()
    return followed.subscribe(() => {
      const next = find()
      if (next === last) return
      last = next
      update()
    })
  })
  return () => {
    track()
    return untrack(find)
  }
}
