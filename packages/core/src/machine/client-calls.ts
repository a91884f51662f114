import type { ToolResultPart } from '../messages.js'
import {
  asString,
  getCountersignMetadata,
  isRecord,
  omitUndefined,
  setCountersignMetadata,
  textContent,
} from '../value.js'
import { findCall, moveCall, setApproval } from './calls.js'
import { touch } from './changes.js'
import type { CallDraft } from './data.js'
import { addDone } from './drafts.js'
import type { Outcome } from './effects.js'
import type { ToolOutput } from './local-event.js'
import type { ChatState, StepTable } from './state.js'

export const clientCallSteps = {
  'tool-started'(state, { toolCallId }) {
    const call = findClientCall(state, toolCallId)
    if (!call || !moveCall(state, call, 'executing')) return 'illegal-step'
    if (call.ready) call.input = call.ready.input
    return undefined
  },
  'tool-output'(state, { toolCallId, messageId, ...result }) {
    const isRunning = (call: CallDraft) => call.state === 'executing'
    const call = findCall(state, toolCallId, isRunning, true) ?? findClientCall(state, toolCallId)
    if (!call) return 'illegal-step'
    if (!moveCall(state, call, 'error' in result ? 'error' : 'complete')) return 'illegal-step'
    if ('error' in result) call.error = result.error
    else call.output = result.output
    answerHere(state, call, messageId, result)
    return undefined
  },
} satisfies Partial<StepTable>

/** The call with that id that may run here; of several in one turn, the first. */
export function findClientCall(state: ChatState, id: string): CallDraft | undefined {
  const isMeant = (call: CallDraft) => canRunOnClient(call) && !call.interrupted
  return findCall(state, id, isMeant, true) ?? findCall(state, id, canRunOnClient)
}

/** Whether a call may run here: it needed no approval, or the server accepted the approval and handed the call back. */
export function canRunOnClient(call: CallDraft): boolean {
  return call.state === 'input-complete' || (call.state === 'approval-responded' && call.ready !== undefined)
}

/** `CUSTOM client-tool-ready`: the server accepted the approval of a client tool and hands the call back to run here. */
export function readyClientTool(state: ChatState, value: unknown): Outcome {
  const { toolCallId, input, decided } = isRecord(value) ? value : {}
  const id = asString(toolCallId) ?? ''
  const isMeant = (call: CallDraft) =>
    call.state === 'approval-responded' && call.approval?.approved === true && !call.ready
  const call = findCall(state, id, isMeant, true)
  if (!call) {
    const latest = state.calls.get(id)
    if (latest?.ready) return undefined
    return latest ? 'illegal-step' : 'unknown-id'
  }
  call.ready = { input }
  call.interrupted = false
  if (decided)
    call.metadata = setCountersignMetadata(call.metadata, {
      ...getCountersignMetadata(call.metadata),
      decided,
    })
  setApproval(state, call, { delivery: 'settled' })
  state.unsent.delete(call)
  return undefined
}

/** Adds the result of a call that ended here, to be sent to the server. */
export function answerHere(state: ChatState, call: CallDraft, id: string, result: ToolOutput): void {
  const { error } = 'error' in result ? result : {}
  const part: ToolResultPart = {
    type: 'tool-result',
    id,
    toolCallId: call.id,
    content:
      'error' in result
        ? JSON.stringify({ type: 'execution-error', reason: result.error.message })
        : toJson(result.output),
    ...(error && {
      error: error.message,
      metadata: { countersign: omitUndefined({ outcome: 'error', code: error.code }) },
    }),
  }
  call.outputSent = false
  call.answered = true
  state.unsent.add(call)
  touch(state, call)
  addDone(state, call.owner, part)
}

/** AG-UI results are text. A value without a JSON form gets a placeholder, so that the model is never left without a result. */
function toJson(output: unknown): string {
  if (typeof output === 'string') return textContent(output)
  try {
    return JSON.stringify(output) ?? 'null'
  } catch {
    return JSON.stringify(isRecord(output) ? '[object without a JSON form]' : String(output))
  }
}
