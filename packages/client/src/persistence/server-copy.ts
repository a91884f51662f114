import { type ChatState, type Message, readMessages, toAGUIMessages } from '@countersign/core'
import type { LoadedThread } from './thread-route.js'

type Shown =
  /** It is loading, or could not be loaded. Every load is the first. */
  | { readonly status: 'not-loaded' }
  /** `thread`: undefined for what began here, or only this browser has. */
  | { readonly status: 'shown'; readonly thread: LoadedThread | undefined; readonly age: Age }

/** `behind`: the server may have more of the shown messages. `new-version`: it will have at the end of the open run, which makes a new version of one. */
type Age = 'current' | 'behind' | 'new-version'

/** What the page shows of the conversation on its server. */
export class ServerCopy {
  #shown: Shown = { status: 'not-loaded' }

  /** What a load brought is shown, or was replaced meanwhile. */
  get isLoaded(): boolean {
    return this.#shown.status === 'shown'
  }

  get thread(): LoadedThread | undefined {
    return this.#shown.status === 'shown' ? this.#shown.thread : undefined
  }

  show(thread: LoadedThread | undefined, age: Age): void {
    this.#shown = { status: 'shown', thread, age }
  }

  /** The page shows something that was not loaded. */
  replaced(): void {
    if (!this.isLoaded) this.show(undefined, 'current')
  }

  /** The server has more, or will have. */
  grows(age: 'behind' | 'new-version'): void {
    if (this.isLoaded && !this.#is('new-version')) this.show(this.thread, age)
  }

  /** No run is open any more. Returns whether that has made a new version: the page does not know all that there are now. */
  runEnded(): boolean {
    if (!this.#is('new-version')) return false
    this.show(this.thread, 'behind')
    return true
  }

  /** Whether the page shows what its server has now. */
  isCurrent(now: LoadedThread, state: ChatState): boolean {
    const before = this.thread
    // A conversation that began here may be shown as it is.
    return this.#is('current') && (!before || isSameHead(before, now)) && shows(state, now)
  }

  #is(age: Age): boolean {
    return this.#shown.status === 'shown' && this.#shown.age === age
  }
}

/** Whether it is still the same conversation, on the same version: where the head has moved to an older message, another one is shown. */
function isSameHead(before: LoadedThread, now: LoadedThread): boolean {
  if (before.createdAt !== now.createdAt) return false
  return before.head === now.head || now.messages.some(({ id }) => id === now.head)
}

/** Whether each of them is shown as it is on the server, behind the same message. Otherwise the page shows what is not there any more. */
function shows(state: ChatState, { messages, parents = [] }: LoadedThread): boolean {
  if (messages.length === 0) return true
  const shown = new Map<string, string>()
  let last: string | null = null
  for (const message of toAGUIMessages(readMessages(state))) {
    shown.set(message.id, place(message, last))
    last = message.id
  }
  return messages.every((message, at) => shown.get(message.id) === place(message, parents[at] ?? null))
}

function place({ content }: Message, parent: string | null): string {
  return JSON.stringify([parent, content])
}
