import type { ChatState } from '@countersign/core'
import type { Step } from './persistence.js'

/** What a request replaces: a user message, or what followed one. */
export type Replaced = { readonly edit: string } | { readonly regenerate: string }

/** What a page has replaced and its server does not know yet. The next request must name it, so that the server keeps both versions. */
export class Replacement {
  readonly #state: Pick<ChatState, 'messages' | 'order'>
  /** What the request of a run must name. */
  readonly #requests: Map<string, Replaced>
  #pending:
    | {
        readonly by: Replaced
        /** Where it was: a message has the even number, what followed it the odd one. */
        readonly position: number
        /** The first message that was dropped. */
        readonly dropped: string | undefined
        /** The last run whose request named it. */
        runId?: string
      }
    | undefined

  constructor(state: Pick<ChatState, 'messages' | 'order'>, requests: Map<string, Replaced>) {
    this.#state = state
    this.#requests = requests
  }

  /** Follows a step before it is applied. Returns whether it begins a run that makes a new version. */
  follow(step: Step): boolean {
    if (step.type === 'truncate') this.#replace(step.messageId, step.inclusive === true)
    else if (step.type === 'set-messages') this.#pending = undefined
    else if (step.type === 'run-opened' && this.#pending) {
      this.#requests.delete(this.#pending.runId ?? '')
      this.#pending.runId = step.runId
      this.#requests.set(step.runId, this.#pending.by)
    } else if (step.type === 'RUN_STARTED' && this.#requests.delete(step.runId)) {
      this.#pending = undefined
      return true
    }
    return false
  }

  /**
   * The page shows this conversation of the server. Without what was dropped, a request whose response was lost has arrived; with it, nothing
   * is to be generated again, while an edit is still to be sent.
   */
  loaded(messages: readonly { readonly id: string }[]): void {
    const { by, dropped, runId } = this.#pending ?? {}
    const isThere = messages.some(({ id }) => id === dropped)
    if (dropped === undefined || (isThere && by && 'edit' in by)) return
    this.#pending = undefined
    this.#requests.delete(runId ?? '')
  }

  #replace(messageId: string, isEdit: boolean): void {
    const { messages, order } = this.#state
    const at = messages.get(messageId)?.position ?? 0
    const position = at * 2 + (isEdit ? 0 : 1)
    // What replaces a message that the server has may be replaced in turn before the server has it.
    if (this.#pending && this.#pending.position <= position) return
    const dropped = order[isEdit ? at : at + 1]?.id
    this.#pending = { by: isEdit ? { edit: messageId } : { regenerate: messageId }, position, dropped }
  }
}
