import {
  type AGUIEvent,
  isRecord,
  type Message,
  StreamProcessor,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { isProvidersOwn, readCalls } from '../history/history.js'
import { messageOf } from '../scope/written-parts.js'
import type { StoredMessage } from '../threads/thread-store.js'
import { marked } from './cut-mark.js'

/** What must be stored so that the branch is stored as it is now. */
interface BranchChange {
  readonly messages: readonly StoredMessage[]
  readonly head: string | null
  /** Call it once they are stored. */
  commit(): void
}

interface ChangeOptions {
  /** Without new data parts. */
  readonly withoutParts?: boolean
  /** More is to come, or the run has failed: its last message is marked, until a later change removes the mark. Default: no. */
  readonly isUnfinished?: boolean
  /** The model has finished, even if it said nothing. */
  readonly hasFinished?: boolean
}

interface Stored {
  readonly parent: string | null
  readonly text: string
}

/** A message of the user interface: the stored message before it, and its own last one. */
interface Place {
  readonly before: string | null
  readonly last: string | null
}

/**
 * The conversation of a run, as its events change it, and what of that is stored. What it costs grows with the turn and not with the
 * conversation: of earlier turns, whose calls have their results, a run changes only data parts. A message that is the same object as when
 * it was stored costs one comparison; only the others are converted.
 */
export class RecordedBranch {
  /** The end of the conversation, behind the message `#before`. */
  readonly #end = new StreamProcessor({ moreSteps: fullSteps })
  readonly #before: string | null
  readonly #stored: Map<string, Stored>
  readonly #places = new WeakMap<UIMessage, Place>()
  /** The messages before the data parts of earlier turns. */
  readonly #parentsOfParts: ReadonlyMap<string, string | null>
  readonly #changedParts = new Map<string, StoredMessage>()
  /** The message that is stored with this run's mark. */
  #cut: string | undefined

  /** `messages` are stored, and are not rewritten until they change. */
  constructor(messages: readonly Message[]) {
    const from = startOfEnd(messages)
    const parentOf = (at: number) => messages[at - 1]?.id ?? null
    this.#before = parentOf(from)
    this.#parentsOfParts = new Map(
      messages.flatMap(({ role, id }, at) => (role === 'activity' && at < from ? [[id, parentOf(at)]] : [])),
    )
    const end = messages.slice(from)
    this.#end.dispatch({ type: 'MESSAGES_SNAPSHOT', messages: end })
    this.#stored = new Map(
      end.map((message, at) => [message.id, { parent: parentOf(from + at), text: JSON.stringify(message) }]),
    )
    let last = this.#before
    for (const message of this.#end.getSnapshot().messages) {
      const before = last
      let isInPlace = true
      for (const { id } of toAGUIMessages([message])) {
        isInPlace &&= this.#stored.get(id)?.parent === last
        last = id
      }
      // A result that was stored after a later message is moved to its call.
      if (isInPlace) this.#places.set(message, { before, last })
    }
  }

  /** Calls that may yet get a result. */
  get openCalls(): number {
    return this.#end.state.open.size
  }

  dispatch(event: AGUIEvent): void {
    const id = event.type === 'ACTIVITY_SNAPSHOT' ? event.messageId : ''
    const parent = this.#parentsOfParts.get(id)
    if (event.type === 'ACTIVITY_SNAPSHOT' && parent !== undefined)
      this.#changedParts.set(id, { id, parent, message: JSON.stringify(messageOf(event)) })
    else {
      if (event.type === 'CUSTOM' && event.name === 'approval-requested') this.#settleBefore(event.value)
      this.#end.dispatch(event)
    }
  }

  /** A call that is asked about anew: its earlier request is settled, though its answer is in no event. */
  #settleBefore(asked: unknown): void {
    const { toolCallId, approval } = isRecord(asked) ? asked : {}
    const before = this.#end.state.calls.get(String(toolCallId))?.approval
    if (!before || !isRecord(approval) || before.id === approval.id) return
    this.#end.dispatch({ type: 'answer', approvalId: before.id, approved: true })
    this.#end.dispatch({ type: 'answer-sent', approvalId: before.id })
  }

  /** What has changed since it was stored, with its marks. */
  change(options: ChangeOptions = {}): BranchChange {
    const parts = [...this.#changedParts.values()]
    const { messages, places, head } = this.#changed(options.withoutParts)
    const { cut, unanswered } = this.#marks(head, messages, options)
    for (const id of [...(cut === this.#cut ? [] : [this.#cut, cut]), unanswered]) {
      const { parent, text } = this.#stored.get(id ?? '') ?? {}
      const isIn = messages.some((message) => message.id === id)
      if (id && text !== undefined && parent !== undefined && !isIn)
        messages.push({ id, parent, message: text })
    }
    const commit = () => {
      this.#cut = cut
      for (const part of parts)
        if (this.#changedParts.get(part.id) === part) this.#changedParts.delete(part.id)
      for (const { id, parent, message } of messages) this.#stored.set(id, { parent, text: message })
      for (const [message, place] of places) this.#places.set(message, place)
    }
    const change = messages.map((message) =>
      message.id === cut || message.id === unanswered ? marked(message, message.id === cut) : message,
    )
    return { messages: [...parts, ...change], head, commit }
  }

  /** The messages that differ from what is stored, the places of all that were converted, and the last id. */
  #changed(withoutParts = false) {
    const messages: StoredMessage[] = []
    const places: (readonly [UIMessage, Place])[] = []
    let head = this.#before
    for (const message of this.#end.getSnapshot().messages) {
      const place = this.#places.get(message)
      if (place !== undefined && place.before === head) {
        head = place.last
        continue
      }
      const before = head
      const isLeft = ({ role, id }: Message) => withoutParts && role === 'activity' && !this.#stored.has(id)
      const converted = toAGUIMessages([message])
      for (const part of converted) {
        if (isLeft(part)) continue
        const text = JSON.stringify(part)
        const stored = this.#stored.get(part.id)
        if (stored?.text !== text || stored.parent !== head)
          messages.push({ id: part.id, parent: head, message: text })
        head = part.id
      }
      if (!converted.some(isLeft)) places.push([message, { before, last: head }])
    }
    return { messages, places, head }
  }

  /**
   * The message to mark as cut off: the last one, if the conversation, should it end here, lacks the rest of a reply. That is what this run has
   * changed last, or a result that nobody has replied to. What waits for its user is not cut off, and a user message without a reply needs no
   * mark; it gets one if the run has finished.
   */
  #marks(
    head: string | null,
    changed: readonly StoredMessage[],
    { isUnfinished, hasFinished }: ChangeOptions,
  ): { readonly cut?: string; readonly unanswered?: string } {
    const end = this.#end.getSnapshot().messages.at(-1)
    if (end === undefined || head === null) return {}
    if (end.role === 'user') return hasFinished ? { unanswered: head } : {}
    const isOwn = head === this.#cut || changed.some(({ id }) => id === head)
    const isCut = isOwn || end.parts.at(-1)?.type === 'tool-result'
    return isUnfinished && isCut && this.#end.state.asked.length === 0 ? { cut: head } : {}
  }
}

/** The index of the last user message with no call before it that is open, or whose result comes behind it. */
function startOfEnd(messages: readonly Message[]): number {
  const userBefore = (end: number) =>
    Math.max(
      messages.findLastIndex(({ role }, index) => role === 'user' && index <= end),
      0,
    )
  let from = userBefore(messages.length)
  for (const { call, index, resultIndex } of readCalls(messages).toReversed()) {
    const isOpen = resultIndex === undefined && !isProvidersOwn(call)
    if (index < from && (isOpen || (resultIndex ?? 0) >= from)) from = userBefore(index)
  }
  return from
}
