import type { ChatClient, ToolMap } from '@countersign/client'
import { untrack } from 'svelte'
import { createSubscriber } from 'svelte/reactivity'
import { toStore } from 'svelte/store'

/** A value, like Svelte's own reactive classes: always current, and an effect that reads it runs again when it changes. */
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

/** Caches the getter that `open` creates for a key, until the key changes. */
export function keepFor<Key, T>(getKey: () => Key, open: (key: Key) => () => T): () => T {
  let opened: { readonly key: Key; readonly get: () => T } | undefined
  return () => {
    const key = getKey()
    if (opened?.key !== key) opened = { key, get: open(key) }
    return opened.get()
  }
}

/** A getter of `read()`. While an effect uses it, the client is attached; otherwise nothing is subscribed. */
export function observe<Tools extends ToolMap, T>(
  client: ChatClient<Tools>,
  read: () => T,
  subscribe: (listener: () => void) => () => void = client.subscribe,
): () => T {
  const track = createSubscriber((update) => {
    let last: T | symbol = read()
    const leave = subscribe(() => {
      let next: T | symbol = Symbol()
      try {
        next = read()
      } catch {
        // The effect must read again, and get the error: otherwise its page would show the value before it.
      }
      if (!Object.is(last, next)) update()
      last = next
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

/** Deferred: attaching may close expired requests, and the state must not change while a page renders or hydrates. */
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
 * A getter of `find()`. `follow` returns the same and may have side effects: it runs at once and, while an effect
 * uses the getter, whenever something that it reads changes. The effect itself runs again only if the result differs.
 */
export function createFinding<T>(find: () => T, follow: () => T): () => T {
  // A store made from a function is Svelte's public way to create an effect in a file without runes.
  const followed = toStore(follow)
  const track = createSubscriber((update) => {
    let last = find()
    return followed.subscribe(() => {
      const next = find()
      if (next !== last) update()
      last = next
    })
  })
  return () => {
    track()
    return untrack(find)
  }
}
