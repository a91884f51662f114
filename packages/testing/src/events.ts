import type { AGUIEvent } from '@countersign/core'
import type { AskOptions, EventStep, FinishOptions, FlowStep, HttpStep } from './steps.js'

/** Sends RUN_STARTED on its own, for a run that then waits. Otherwise it is sent before the first event. */
export const started = (): EventStep => ({ step: 'started' })

/** A complete text, in one delta or in the given ones. */
export const text = (...deltas: string[]): EventStep => ({ step: 'text', deltas })

/** The parts of a text, for a script that stops inside it. */
export const textStart = (): EventStep => ({ step: 'text-start' })
export const textDelta = (delta: string): EventStep => ({ step: 'text-delta', delta })
export const textEnd = (): EventStep => ({ step: 'text-end' })

/** The model's reasoning. */
export const reasoning = (words: string): EventStep => ({ step: 'reasoning', text: words })

/** A complete tool call: START, ARGS, END. */
export const call = (id: string, name: string, args: unknown = {}): EventStep => ({
  step: 'call',
  id,
  name,
  args,
})

/** The parts of a call, for a script that stops inside it. */
export const callStart = (id: string, name: string): EventStep => ({ step: 'call-start', id, name })
export const callArgs = (id: string, delta: string): EventStep => ({ step: 'call-args', id, delta })
export const callEnd = (id: string): EventStep => ({ step: 'call-end', id })

/** Requests approval of a call: at once with an event, and again with the interrupt that ends the run. */
export const ask = (approvalId: string, callId: string, options: AskOptions = {}): EventStep => ({
  step: 'ask',
  approvalId,
  callId,
  options,
})

/** A call with its approval request: the call `c<x>` of the tool `name`, requested as `a<x>`. */
export const gated = (
  x: string | number,
  name = 'delete_file',
  args: unknown = { path: `${x}.log` },
): EventStep[] => [call(`c${x}`, name, args), ask(`a${x}`, `c${x}`)]

/** The tool ran. */
export const result = (callId: string, output: unknown = 'done'): EventStep => ({
  step: 'result',
  callId,
  output,
})

/** The user denied the call. */
export const denied = (callId: string, reason?: string): EventStep => ({
  step: 'failure',
  callId,
  outcome: 'denied',
  reason,
})

/** Nobody answered in time. */
export const cancelled = (callId: string, reason?: string): EventStep => ({
  step: 'failure',
  callId,
  outcome: 'cancelled',
  reason,
})

/** The tool failed. */
export const failure = (callId: string, reason = 'It did not work.'): EventStep => ({
  step: 'failure',
  callId,
  outcome: 'error',
  reason,
})

/** The result for every answer that the request carries: done, denied or cancelled. A server sends these first in a resumed run. */
export const resolve = (): EventStep => ({ step: 'resolve' })

/** The server refuses an answer. `code` is one of `ApprovalErrorCode`. */
export const refuse = (approvalId: string, code: string, message?: string): EventStep => ({
  step: 'refuse',
  approvalId,
  code,
  message,
})

/** The server accepted the approval of a client tool and hands the call back. `input`: default the call's own. */
export const clientReady = (callId: string, input?: unknown): EventStep => ({
  step: 'client-ready',
  callId,
  input,
})

/** A custom event of the application. */
export const custom = (name: string, value: unknown): EventStep => event({ type: 'CUSTOM', name, value })

/** Any event unchanged, legal or not. */
export const event = (
  given: AGUIEvent | { readonly type: string; readonly [key: string]: unknown },
): EventStep => ({
  step: 'event',
  event: given,
})

/** RUN_FINISHED. A script that just ends sends it automatically; use this to choose how, or to send something after it. */
export const finish = (options: FinishOptions = {}): EventStep => ({ step: 'finish', options })

/** RUN_ERROR. */
export const error = (message = 'The model is not available.', code?: string): EventStep => ({
  step: 'error',
  message,
  code,
})

/** Waits until the test calls `release(name)`. */
export const hold = (name = 'hold'): FlowStep => ({ step: 'hold', name })

/** Waits for that many microtasks. */
export const microtasks = (count = 1): FlowStep => ({ step: 'microtasks', count })

/** Waits for that many turns of the event loop. */
export const macrotasks = (count = 1): FlowStep => ({ step: 'macrotasks', count })

/** The user acts here: in process, this is when the client has processed everything before and asks for the next event. */
export const action = (label: string, doIt: () => unknown): FlowStep => ({
  step: 'action',
  label,
  action: doIt,
})

/** The connection breaks. */
export const cut = (message = 'The connection was reset.'): FlowStep => ({ step: 'cut', message })

/** The stream ends normally, but without RUN_FINISHED. */
export const end = (): FlowStep => ({ step: 'end' })

/** Over HTTP: a complete response instead of a stream. */
export const respond = (status: number, body = '', contentType = 'application/json'): HttpStep => ({
  step: 'respond',
  status,
  contentType,
  body,
})

/** Over HTTP: raw text in the body. */
export const bytes = (raw: string): HttpStep => ({ step: 'bytes', text: raw })
