import { readRecord, type ThreadRecord, type UIMessage } from '@countersign/core'
import type { KeptSession, Step } from './persistence.js'

/**
 * Messages of the user that the server was never sent, and that an edit or a regeneration of an earlier message removed from the page. The
 * server keeps everything else that is replaced, as another version; these would be nowhere.
 */
export class LeftUnsent {
  readonly #session: Pick<KeptSession, 'state' | 'newId'>
  /** Messages of the user that the server has. */
  readonly #known = new Set<string>()
  #messages: readonly UIMessage[] = []
  /** Why they were not sent. */
  #error: ThreadRecord['error']

  constructor(session: Pick<KeptSession, 'state' | 'newId'>) {
    this.#session = session
  }

  /** Follows a step before it is applied. */
  follow(step: Step): void {
    if (step.type === 'set-messages') this.#messages = []
    else if (step.type === 'RUN_STARTED') this.#know(this.#session.state.order)
    else if (step.type === 'truncate') {
      const { messages: all, error } = readRecord(this.#session.state)
      const from = all.findIndex(({ id }) => id === step.messageId) + 1
      const lastReply = all.findLastIndex(({ role }) => role === 'assistant')
      const dropped = from === 0 ? [] : all.slice(Math.max(from, lastReply + 1))
      const unsent = dropped.filter(({ id, role }) => role === 'user' && !this.#known.has(id))
      if (unsent.length === 0) return
      // With new ids: if one has arrived after all, it is on the version that is left, and this one can still be sent.
      this.#messages = [
        ...this.#messages,
        ...unsent.map((message) => ({ ...message, id: this.#session.newId() })),
      ]
      this.#error = error
    }
  }

  /** What was not sent, with these. */
  with(unsent: ThreadRecord): ThreadRecord {
    if (this.#messages.length === 0) return unsent
    const error = unsent.error ?? this.#error
    return { ...unsent, messages: [...unsent.messages, ...this.#messages], ...(error && { error }) }
  }

  /** The page shows this conversation of the server, followed by what it was not sent. */
  loaded(messages: readonly { readonly id: string; readonly role: string }[]): void {
    this.#know(messages)
    this.#messages = []
  }

  #know(messages: readonly { readonly id: string; readonly role: string }[]): void {
    for (const { id, role } of messages) if (role === 'user') this.#known.add(id)
  }
}
