import {
  areAllToolsComplete,
  CountersignError,
  findAnswerable,
  hasDeferredAnswer,
  isRecord,
  type RunEnd,
  sameJson,
  type ToolCallApproval,
  type ToolMap,
  type UIMessage,
  visibleRequests,
} from '@countersign/core'
import { expiryOf } from './expiry.js'
import type { AnswerResult, SendResult } from './results.js'
import type { Runner } from './runner.js'
import type { Session } from './session.js'

/** A person's answer to a request for approval, by the approval's id. */
export interface ApprovalResponse {
  readonly id: string
  readonly approved: boolean
  readonly reason?: string
  /** The arguments as edited, whole; only where the request allows it. */
  readonly input?: unknown
  readonly scope?: 'once' | 'session'
}

/** A client tool's result, given by the application. */
export type ToolResult = { readonly toolCallId: string } & (
  | { readonly output: unknown }
  | { readonly error: string }
)

/** An answer to a question that concerns no tool call. */
export type InterruptResponse = { readonly id: string } & (
  | { readonly payload: unknown }
  | { readonly cancel: true }
)

/**
 * What a person can do, done here: each act turns into steps of the machine and, where it leads to one, a request. An act takes one
 * plain value, so that it can come from another tab as well.
 */
export class Acts<Tools extends ToolMap> {
  readonly #session: Session<Tools>
  readonly #runner: Runner<Tools>

  constructor(session: Session<Tools>, runner: Runner<Tools>) {
    this.#session = session
    this.#runner = runner
  }

  /** Whether a name that came from elsewhere is that of an act. */
  knows(name: string): name is ActName {
    return names.has(name)
  }

  async send(message: UIMessage): Promise<SendResult> {
    const { state, options } = this.#session
    if (this.#runner.disposed) return { status: 'refused', error: disposedError() }
    // Another tab may hand over again what a tab that is gone had taken already.
    if (state.messages.has(message.id)) return { status: 'sent' }
    if (state.queue.some(({ id }) => id === message.id)) return { status: 'queued', id: message.id }
    const visible = visibleRequests(state)
    if (options.onPendingMessage === 'reject' && visible.length > 0) {
      return { status: 'refused', error: pendingError(visible) }
    }
    this.#runner.personActs()
    const item = { id: message.id, message, visible }
    if (!this.#runner.run && state.queue.length === 0 && this.#runner.mayLeave(item)) {
      return sendResult(await this.#runner.say(message).done)
    }
    this.#session.dispatch({ type: 'queue', item })
    if (!this.#runner.run) this.#runner.sendQueued()
    const { run } = this.#runner
    if (!run || state.queue.some(({ id }) => id === item.id)) return { status: 'queued', id: item.id }
    return sendResult(await run.done)
  }

  cancelQueued(id: string): boolean {
    const found = this.#session.state.queue.some((item) => item.id === id)
    if (found) this.#session.dispatch({ type: 'unqueue', id })
    return found
  }

  async answer(response: ApprovalResponse): Promise<AnswerResult> {
    const { id, approved, reason, scope } = response
    if (this.#runner.disposed) return disposed
    const found = findAnswerable(this.#session.state, id)
    if (found.status === 'not-found') this.#session.warn(`There is no approval "${id}" to answer.`)
    if (found.status !== 'open') return found
    if (expiryOf(found.approval) <= this.#session.now()) {
      this.#session.dispatch({ type: 'close', ids: [id], because: 'expired' })
      return { status: 'expired' }
    }
    const edited = copyJson(response.input)
    const fault =
      edited.fault ?? faultOf({ ...response, input: edited.value }, found.approval, found.call.input)
    if (fault !== undefined) return { status: 'refused', code: 'approval-malformed', reason: fault }
    this.#runner.personActs()
    this.#session.dispatch({ type: 'answer', approvalId: id, approved, reason, input: edited.value, scope })
    return this.#runner.sendAnswer(found.call)
  }

  async giveResult(result: ToolResult): Promise<AnswerResult> {
    if (this.#runner.disposed) return disposed
    const call = this.#session.state.calls.get(result.toolCallId)
    if (!call) return { status: 'not-found' }
    const open = call.state === 'input-complete' || (call.state === 'approval-responded' && call.ready)
    if (!open) return { status: 'closed', reason: call.state }
    this.#runner.personActs()
    const outcome =
      'error' in result ? { error: { message: result.error } } : { output: result.output ?? null }
    const messageId = this.#session.newId()
    this.#session.dispatch({ type: 'tool-output', toolCallId: call.id, messageId, ...outcome })
    return this.#runner.sendAnswer(call)
  }

  async respond(response: InterruptResponse): Promise<AnswerResult> {
    if (this.#runner.disposed) return disposed
    const cell = this.#session.state.interrupts.get(response.id)
    if (!cell) return { status: 'not-found' }
    if (cell.response) return { status: 'already-answered' }
    this.#runner.personActs()
    const answer = 'cancel' in response ? { cancel: true as const } : { payload: response.payload }
    this.#session.dispatch({ type: 'respond', interruptId: response.id, response: answer })
    return this.#runner.sendAnswer(cell)
  }

  /** The time of requests has run out. Sends nothing: the server learns of it with the next request. */
  expire(approvalIds: readonly string[]): void {
    const { state } = this.#session
    const now = this.#session.now()
    const ids = approvalIds.filter((id) => {
      const found = findAnswerable(state, id)
      return found.status === 'open' && expiryOf(found.approval) <= now
    })
    if (ids.length > 0) this.#session.dispatch({ type: 'close', ids, because: 'expired' })
  }

  stop(): void {
    this.#runner.hold()
    this.#runner.void()
  }

  async retry(): Promise<void> {
    const { state } = this.#session
    if (state.error || hasDeferredAnswer(state)) await this.#again()
  }

  async resume(): Promise<void> {
    const { state } = this.#session
    if (this.#runner.run || this.#runner.disposed) return
    this.#runner.personActs()
    this.#runner.startTools()
    if (state.unsent.size > 0 && areAllToolsComplete(state)) await this.#again()
  }

  async #again(): Promise<void> {
    if (!this.#runner.run && !this.#runner.disposed) await this.#runner.again()
  }

  async regenerate(messageId: string | undefined): Promise<SendResult> {
    if (this.#runner.disposed) return { status: 'refused', error: disposedError() }
    const { order, messages } = this.#session.state
    const last = messageId === undefined ? order.length - 1 : (messages.get(messageId)?.position ?? -1)
    const spoken = order.slice(0, last + 1).findLast((cell) => cell.role === 'user')
    if (!spoken) {
      const message = 'There is no message of the person before it to answer again.'
      return { status: 'refused', error: new CountersignError('invalid-argument', message, { messageId }) }
    }
    this.#runner.void()
    this.#runner.personActs()
    const truncate = () => this.#session.dispatch({ type: 'truncate', messageId: spoken.id })
    return sendResult(await this.#runner.open('message', truncate).done)
  }

  setMessages(messages: readonly UIMessage[]): void {
    this.#runner.void()
    this.#session.dispatch({ type: 'set-messages', messages })
  }
}

/** The acts by name. */
export type ActName = Exclude<keyof Acts<ToolMap>, 'knows'>

const names = new Set<string>([
  'send',
  'cancelQueued',
  'answer',
  'giveResult',
  'respond',
  'expire',
  'stop',
  'retry',
  'resume',
  'regenerate',
  'setMessages',
] satisfies ActName[])

const disposed = { status: 'closed', reason: 'disposed' } as const

export function disposedError(): CountersignError {
  return new CountersignError('disposed', 'This chat was disposed of; make a new client.')
}

/** What makes an answer one that the server could not take. It is told before the request is used up. */
function faultOf(
  { approved, input, scope }: ApprovalResponse,
  approval: ToolCallApproval,
  asked: unknown,
): string | undefined {
  if (typeof approved !== 'boolean') return '`approved` has to be true or false.'
  if (!approved) return undefined
  if (input !== undefined && !approval.allowEdits) {
    return 'The arguments of this call may not be edited; leave `input` out.'
  }
  const forbidden = input === undefined ? [] : forbiddenEdits(approval.allowEdits, asked, input)
  if (forbidden.length > 0) return `These arguments may not be edited: ${forbidden.join(', ')}.`
  if (scope !== undefined && !approval.options.includes(scope)) {
    return `The scope "${scope}" is not offered for this call.`
  }
  return undefined
}

/** Arguments as they are at this moment: what the page does with its object afterwards changes no answer. */
function copyJson(value: unknown): { readonly value?: unknown; readonly fault?: string } {
  if (value === undefined) return {}
  try {
    return { value: JSON.parse(JSON.stringify(value)) as unknown }
  } catch {
    return { fault: 'The edited arguments have no JSON form.' }
  }
}

/** Keys at the top that differ although only others may. */
function forbiddenEdits(allowed: ToolCallApproval['allowEdits'], asked: unknown, input: unknown): string[] {
  if (!Array.isArray(allowed) || !isRecord(asked) || !isRecord(input)) return []
  const keys = new Set([...Object.keys(asked), ...Object.keys(input)])
  return [...keys].filter((key) => !allowed.includes(key) && !sameJson(asked[key], input[key]))
}

function sendResult(end: RunEnd): SendResult {
  return end.type === 'failed' ? { status: 'failed', error: end.error } : { status: 'sent' }
}

function pendingError(pending: readonly string[]): CountersignError {
  const message = 'There are requests that wait for an answer. Answer them first; the message was not sent.'
  return new CountersignError('pending-approvals', message, { pending })
}
