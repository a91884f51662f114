import type { CallDraft } from './data.js'
import type { ChatState } from './state.js'

/** The calls that wait for approval, in conversation order, with a note of what changed since they were last read. */

export function isAsked(call: CallDraft): boolean {
  return call.state === 'approval-requested'
}

export function enterAsked(state: ChatState, call: CallDraft): void {
  if (!isAsked(call)) return
  state.asked.splice(placeAmong(state.asked, call), 0, call)
  changeAsked(state, call)
}

export function leaveAsked(state: ChatState, call: CallDraft): void {
  if (!isAsked(call)) return
  const near = placeAmong(state.asked, call)
  const at = state.asked[near] === call ? near : state.asked.indexOf(call)
  state.asked.splice(at, 1)
  const { published } = state
  published.pendingChange = published.pendingChange === 'none' ? at : 'any'
}

/** Notes that a pending call was added or has changed. */
export function changeAsked({ asked, published }: ChatState, call: CallDraft): void {
  const { pending, pendingChange } = published
  const isMore = pendingChange === 'added' || (pendingChange === 'none' && asked.length > pending.length)
  published.pendingChange = isMore && asked.at(-1) === call ? 'added' : 'any'
}

/** The position of a call in conversation order. A binary search, because the server decides how many calls wait. */
function placeAmong(calls: readonly CallDraft[], { owner, index }: CallDraft): number {
  let from = 0
  let to = calls.length
  while (from < to) {
    const middle = (from + to) >> 1
    const other = calls[middle]
    if (other && (other.owner.position - owner.position || other.index - index) < 0) from = middle + 1
    else to = middle
  }
  return from
}
