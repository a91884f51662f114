import { answer, paced } from './paced.js'

/** A store by hand: immutable messages; who listens to all hears of each delta, and who listens to one message of its own. */
export function openStore({ history, deltas }) {
  let messages = history
  let ids = history.map(({ id }) => id)
  const listeners = new Set()
  const byId = new Map()
  const tell = (id) => {
    for (const listener of byId.get(id) ?? []) listener()
    for (const listener of listeners) listener()
  }
  const add = (message) => {
    messages = [...messages, message]
    ids = [...ids, message.id]
    tell(message.id)
  }
  return {
    read: () => messages,
    readIds: () => ids,
    readOne: (id) => messages.find((message) => message.id === id),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    subscribeOne(id, listener) {
      const set = byId.get(id) ?? new Set()
      byId.set(id, set.add(listener))
      return () => set.delete(listener)
    },
    async play() {
      add({ id: 'go', role: 'user', text: 'go' })
      for await (const event of paced(answer(deltas))) {
        if (event.type === 'TEXT_MESSAGE_START') add({ id: event.messageId, role: 'assistant', text: '' })
        else if (event.type === 'TEXT_MESSAGE_CONTENT') {
          const last = messages[messages.length - 1]
          messages = messages.slice()
          messages[messages.length - 1] = { ...last, text: last.text + event.delta }
          tell(last.id)
        }
      }
    },
  }
}
