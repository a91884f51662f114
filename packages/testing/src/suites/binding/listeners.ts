import type { ChatClient } from '@countersign/client'

/** Counts subscriptions to a client from now on: to all of it, to one message, or by attaching (which subscribes for expiry). */
export function watchListeners(client: ChatClient): () => number {
  const { subscribe, subscribeMessage } = client
  let listening = 0
  const counted = (leave: () => void): (() => void) => {
    let left = false
    listening++
    return () => {
      leave()
      if (!left) listening--
      left = true
    }
  }
  client.subscribe = (listener) => counted(subscribe(listener))
  client.subscribeMessage = (id, listener) => counted(subscribeMessage(id, listener))
  return () => listening
}
