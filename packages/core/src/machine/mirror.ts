import { getCountersignMetadata, omitUndefined } from '../value.js'
import { reopen } from './call-arguments.js'
import type { CallDraft, InterruptDraft, MessageDraft } from './data.js'
import { retainMessages } from './drafts.js'
import { loadMessage } from './load.js'
import type { LiveCall, LiveMessage, MirrorState, Place } from './local-event.js'
import { readMessages } from './read.js'
import type { ChatState, MoreSteps } from './state.js'

export function readMirror(state: ChatState): MirrorState {
  const { run, error, order } = state
  const calls = order.flatMap(({ parts }) => parts.filter((part) => part.kind === 'call'))
  return {
    messages: readMessages(state),
    live: order.filter(isLive).map(readLive),
    calls: calls.map(readCall),
    repeats: [...state.repeats],
    interrupts: [...state.interrupts.values()].map(({ kind: _, ...draft }) => draft),
    queue: state.queue,
    unsent: [...state.unsent].map(placeOf),
    run: run.phase === 'idle' ? run : { ...run, carried: run.carried.map(placeOf) },
    subagents: [...state.subagents.values()],
    ...(state.shared !== undefined && { state: state.shared }),
    ...(error && { error }),
  }
}

function isLive({ text, streaming, provisional }: MessageDraft): boolean {
  return text !== undefined || streaming || provisional
}

function readLive({ position, text, streaming, provisional }: MessageDraft): LiveMessage {
  return { at: position, text: text !== undefined, streaming, provisional }
}

function readCall(call: CallDraft): LiveCall {
  return { at: placeOf(call), ...unpublished(call) }
}

/** The state of a call that its published part does not include. */
function unpublished(call: Omit<LiveCall, 'at'>): Omit<LiveCall, 'at'> {
  const { answered, interrupted, token, ready, replay, repeats } = call
  const { doubted, unclear, outputSent, inDoubt, askedIn } = call
  const asked = { doubted, unclear, outputSent, inDoubt, askedIn }
  return { answered, interrupted, token, ready, replay, repeats, ...asked }
}

function placeOf(item: CallDraft | InterruptDraft): Place {
  return item.kind === 'interrupt' ? item.interrupt.id : [item.owner.position, item.index]
}

/** The step that replaces the state with that of another tab. Nothing runs and nothing is sent because of it. */
export const mirrorSteps = {
  mirror(state, { state: mirror }) {
    const { run } = mirror
    retainMessages(state, () => false)
    for (const message of mirror.messages) loadMessage(state, message, (part) => part)
    for (const live of mirror.live) reviveMessage(state, live)
    for (const [id, n] of mirror.repeats ?? []) state.repeats.set(id, n)
    for (const call of state.open) {
      if (call.state === 'awaiting-input' || call.state === 'input-streaming') reopen(call)
    }
    for (const live of mirror.calls) reviveCall(state, live)
    state.interrupts.clear()
    for (const kept of mirror.interrupts)
      state.interrupts.set(kept.interrupt.id, { kind: 'interrupt', ...kept })
    state.unsent.clear()
    for (const item of findAll(state, mirror.unsent)) state.unsent.add(item)
    state.run = run.phase === 'idle' ? run : { ...run, carried: findAll(state, run.carried) }
    state.subagents.clear()
    for (const subagent of mirror.subagents) state.subagents.set(subagent.id, subagent)
    state.queue = mirror.queue
    state.shared = mirror.state
    state.error = mirror.error
    state.pendingNotification = 'change'
    return undefined
  },
} satisfies MoreSteps

function reviveMessage(state: ChatState, { at, text, streaming, provisional }: LiveMessage): void {
  const draft = state.order[at]
  if (!draft) return
  const last = draft.parts.at(-1)
  draft.text = text && last?.kind === 'text' ? last : undefined
  draft.streaming = streaming
  // A structured text is read on by its step, which is loaded later: importing it here would load it with every page.
  const { id: messageId, metadata } = draft
  if (streaming && getCountersignMetadata(metadata).output !== undefined)
    state.moreSteps.TEXT_MESSAGE_START?.(
      state,
      omitUndefined({ type: 'TEXT_MESSAGE_START' as const, messageId, metadata }),
    )
  draft.provisional = provisional
}

function reviveCall(state: ChatState, live: LiveCall): void {
  const call = found(state, live.at)
  if (call?.kind === 'call') Object.assign(call, unpublished(live))
}

function findAll(state: ChatState, places: readonly Place[]): (CallDraft | InterruptDraft)[] {
  return places.flatMap((place) => found(state, place) ?? [])
}

function found(state: ChatState, place: Place): CallDraft | InterruptDraft | undefined {
  if (typeof place === 'string') return state.interrupts.get(place)
  const part = state.order[place[0]]?.parts[place[1]]
  return part?.kind === 'call' ? part : undefined
}
