import {
  areAllToolsComplete,
  awaitedRequests,
  CountersignError,
  canRunOnClient,
  canWithdraw,
  findAnswerable,
  findClientCall,
  hasDeferredAnswer,
  hasUnsentAnswer,
  isExactJson,
  isRecord,
  type LocalEvent,
  type QueuedMessage,
  type RequestOptions,
  sameJson,
  type ToolCallApproval,
  type ToolMap,
  type UIMessage,
} from '@countersign/core'
import { type FieldIssue, inWords, issuesOf } from './client-tools.js'
import type {
  ApprovalCancellation,
  ApprovalResponse,
  CommandName,
  CommandValues,
  InterruptResponse,
  ToolResult,
} from './command.js'
import { expiryOf } from './expiry.js'
import type { Observation } from './observation.js'
import type { CheckResponse } from './options.js'
import type { Answered, AnswerResult, SendResult } from './results.js'
import type { Run } from './run.js'
import type { Runner } from './runner.js'
import type { Session } from './session.js'

/**
 * The commands of the user. Each one dispatches events and, where needed, opens a request. It takes one plain value, so that it can also
 * come from another tab.
 */
function createCommands<Tools extends ToolMap>(session: Session<Tools>, runner: Runner) {
  const { state, dispatch } = session
  const isQueued = (id: string) => state.queue.some((item) => item.id === id)

  /** Dispatches an answer or output of the user, and sends it. */
  function give(answered: Answered, event: LocalEvent, options?: RequestOptions): Promise<AnswerResult> {
    runner.resetContinuationLimit(answered.kind === 'call' ? answered : answered.interrupt.id)
    return session.store.batch(() => {
      dispatch(event)
      return runner.sendAnswer(answered, options)
    })
  }

  /** The next request reports it to the server. Answers and messages that waited only for these requests are sent now. */
  function expire(ids: readonly string[]): void {
    session.store.batch(() => {
      dispatch({ type: 'close', ids, because: 'expired' })
      runner.check()
    })
  }

  /** Performs what ends an open run and client tools. The application is told like of a stop, once all of it is done. */
  function ending<T>(act: () => T, isOver = runner.isBusy): T {
    const result = session.store.batch(act)
    if (isOver) session.callBack(() => session.options.onStop?.())
    return result
  }

  /** Removes everything after a user message and requests a new reply; with `message`, also replaces the user message. */
  function restart(messageId: string, options?: RequestOptions, message?: UIMessage): Promise<SendResult> {
    const replace = () => {
      dispatch({ type: 'truncate', messageId, inclusive: message && true })
      if (message) dispatch({ type: 'user-message', message })
    }
    const run = ending(() => {
      runner.void()
      runner.resetContinuationLimit()
      return runner.open('message', replace, { options })
    })
    return sendResult(run)
  }

  /** Answers one request, or closes it without an answer. */
  async function answer(response: ApprovalResponse | ApprovalCancellation): Promise<AnswerResult> {
    const { id } = response
    const found = findAnswerable(state, id)
    if (found.status === 'not-found') session.warn(`There is no approval "${String(id)}" to answer.`)
    if (found.status !== 'open') return found
    const { call, approval } = found
    if (expiryOf(approval) <= session.now()) {
      expire([id])
      return { status: 'expired' }
    }
    if (isCancel(response)) return give(call, { type: 'close', ids: [id], because: 'moved-on' })
    const { approved, reason, scope, mandate, input, edited, options } = response
    const fault = faultOf(response, approval, call)
    if (fault !== undefined) return { status: 'refused', code: 'approval-malformed', reason: fault }
    const issues = approved && input !== undefined ? issuesOfEdit(call.name, input) : undefined
    if (issues) return { status: 'refused', code: 'approval-edit-invalid', reason: inWords(issues), issues }
    // The schema may have answered.
    const now = findAnswerable(state, id)
    if (now.status !== 'open') return now
    const given = { approvalId: id, approved, reason, input, edited, scope, mandate }
    return give(call, { type: 'answer', ...given }, options)
  }

  /** The server checks edits in any case: what this page cannot judge is sent. */
  function issuesOfEdit(name: string, input: unknown): readonly FieldIssue[] | undefined {
    const { tools = [], serverTools = [] } = session.options
    const schema = [...tools, ...serverTools].find((tool) => tool.name === name)?.input
    let issues: readonly FieldIssue[] | undefined
    session.callBack(() => {
      // a copy: some schemas write defaults into what they validate
      const checked = schema?.['~standard'].validate(JSON.parse(JSON.stringify(input)))
      issues = issuesOf(checked)
      return checked
    })
    return issues
  }

  return {
    async send(item: QueuedMessage): Promise<SendResult> {
      const { id, message, replaces, options } = item
      if (replaces !== undefined) {
        if (state.messages.get(replaces)?.role === 'user') return restart(replaces, options, message)
        return refused('invalid-argument', 'There is no such user message.', { replaces })
      }
      // Another tab may hand over a message again that a closed tab had already accepted.
      if (state.messages.has(id)) return { status: 'sent' }
      if (isQueued(id)) return { status: 'queued', id }
      runner.closeExpired()
      const visible = awaitedRequests(state)
      if (session.options.onPendingMessage === 'reject' && visible.length > 0) {
        return answersFirst(visible)
      }
      const { whenBusy, maxQueued = 100 } = session.options
      if (runner.isBusy && whenBusy === 'drop') return busy()
      runner.resetContinuationLimit()
      const isInterrupt = whenBusy === 'interrupt' && runner.isBusy
      const run = ending(() => {
        if (isInterrupt) runner.void()
        if (!runner.run && state.queue.length === 0 && runner.mayLeave(item))
          return runner.say(message, options)
        runner.resolveRest()
        return undefined
      }, isInterrupt)
      if (run) return sendResult(run)
      if (state.queue.length >= maxQueued) return queueFull(maxQueued)
      dispatch({ type: 'queue', item })
      if (!runner.run) runner.sendQueued(true)
      return runner.run && !isQueued(id) ? sendResult(runner.run) : { status: 'queued', id }
    },

    async continue(options: RequestOptions): Promise<SendResult> {
      if (runner.isBusy) return busy()
      runner.closeExpired()
      const visible = awaitedRequests(state)
      if (visible.length > 0) return answersFirst(visible)
      runner.resetContinuationLimit()
      if (!hasUnsentAnswer(state)) runner.sendQueued(true)
      return sendResult(runner.run ?? runner.open('message', undefined, { options }))
    },

    cancelQueued: (id: string): void => dispatch({ type: 'unqueue', id }),

    answer,

    /** Sent in one request, if nothing else is open. A refused answer does not affect the others. */
    answerAll: (responses: CommandValues['answerAll']): Promise<readonly AnswerResult[]> =>
      runner.gather(() => Promise.all(responses.map(answer))),

    async withdraw(approvalId: string): Promise<boolean> {
      const found = state.approvals.get(approvalId)
      if (found?.approval?.id !== approvalId || !canWithdraw(state, found)) return false
      // Batched: a listener that answers again at once must not find the withdrawn answer unsettled.
      session.store.batch(() => {
        dispatch({ type: 'withdraw-answer', approvalId })
        runner.withdrawn(found)
      })
      // Until it is stored, a page that is opened now would send the answer.
      return runner.keep()
    },

    async giveResult(result: ToolResult): Promise<AnswerResult> {
      const { toolCallId } = result
      const call = findClientCall(state, toolCallId) ?? state.calls.get(toolCallId)
      if (!call) return { status: 'not-found' }
      if (!canRunOnClient(call)) return { status: 'closed', reason: call.state }
      if ('error' in result && typeof result.error !== 'string')
        return { status: 'refused', code: 'approval-malformed', reason: '`error` must be a text.' }
      const outcome =
        'error' in result ? { error: { message: result.error } } : { output: result.output ?? null }
      return give(
        call,
        { type: 'tool-output', toolCallId, messageId: session.newId(), ...outcome },
        result.options,
      )
    },

    async respond(response: InterruptResponse): Promise<AnswerResult> {
      const draft = state.interrupts.get(response.id)
      if (!draft) return { status: 'not-found' }
      if (draft.response) return { status: 'already-answered' }
      // If the stream broke, no run is open: the next request carries the answer.
      const { connection } = runner.run ?? session.options
      if (draft.liveIn !== undefined && !connection.answer)
        return {
          status: 'closed',
          reason: 'This connection cannot answer while the run is open.',
        }
      const { id: interruptId } = response
      if (isCancel(response))
        return give(draft, { type: 'respond', interruptId, response: { cancel: true } }, response.options)
      // AG-UI 1.0, interrupts: what has expired can only be cancelled.
      if (expiryOf(draft.interrupt) <= session.now()) return { status: 'expired' }
      const { payload } = response
      const { checkResponse = refuseUnchecked } = session.options
      const missing =
        payload === undefined ? 'Give `payload`, which may be null, or `cancel: true`.' : accepted
      const fault = session.callBack(() => checkResponse(payload, draft.interrupt) ?? missing)
      const reason =
        typeof fault === 'string' ? fault : '`checkResponse` threw an error, or returned no text.'
      if (fault !== accepted) return { status: 'refused', code: 'approval-malformed', reason }
      return give(draft, { type: 'respond', interruptId, response: { payload } }, response.options)
    },

    expire(approvalIds: readonly string[]): void {
      const now = session.now()
      const ids = approvalIds.filter((id) => {
        const found = findAnswerable(state, id)
        return found.status === 'open' && expiryOf(found.approval) <= now
      })
      if (ids.length > 0) expire(ids)
    },

    stop(): void {
      ending(() => {
        runner.pause()
        runner.void()
        runner.resolveRest()
      })
    },

    async retry(): Promise<void> {
      runner.closeExpired()
      const mayStart = runner.mayStart()
      if ((mayStart && !(await mayStart)) || runner.run || runner.disposed) return
      if (state.error || hasDeferredAnswer(state)) {
        // A snapshot may bring calls that another page has begun to run.
        if ((await runner.retryLastRun()) && (await runner.mayStart())) runner.startTools()
        return
      }
      runner.resetContinuationLimit()
      if (runner.startTools() && state.unsent.size > 0 && areAllToolsComplete(state))
        await runner.retryLastRun()
      else await runner.sendQueued(true)?.done
    },

    async regenerate({ messageId, options }: CommandValues['regenerate']): Promise<SendResult> {
      const { order, messages } = state
      const last = messageId === undefined ? order.length - 1 : (messages.get(messageId)?.position ?? -1)
      const spoken = order.slice(0, last + 1).findLast((draft) => draft.role === 'user')
      if (!spoken) {
        return refused('invalid-argument', 'There is no earlier user message.', { messageId })
      }
      return restart(spoken.id, options)
    },

    setState: ({ state = null }: CommandValues['setState']): void => dispatch({ type: 'set-state', state }),

    clearError: (): void => dispatch({ type: 'clear-error' }),

    setMessages(messages: readonly UIMessage[]): void {
      ending(() => {
        runner.void()
        runner.forget()
        dispatch({ type: 'set-messages', messages })
        runner.resolveRest()
      })
    },
  } satisfies { readonly [Name in CommandName]: (value: CommandValues[Name]) => unknown }
}

/** Performs a command by name. A disposed chat refuses new input. */
export function createPerformer<Tools extends ToolMap>(session: Session<Tools>, runner: Runner) {
  const commands = createCommands(session, runner)
  return (name: CommandName, value: unknown): unknown => {
    session.seen?.({ type: 'command', name, value } as Observation)
    if (!runner.disposed || !takesSomething.has(name)) {
      const result = commands[name](value as never)
      void runner.keep()
      return result
    }
    const isSaid = name === 'send' || name === 'continue' || name === 'regenerate'
    if (isSaid) return Promise.resolve({ status: 'refused', error: disposedError() })
    return Promise.resolve(Array.isArray(value) ? value.map(() => disposed) : name !== 'withdraw' && disposed)
  }
}

/** The commands by name, and what each takes and gives. */
export type Commands = ReturnType<typeof createCommands>

/** The commands with input from the user; each resolves with its outcome. */
const takesSomething = new Set<CommandName>([
  'send',
  'continue',
  'regenerate',
  'answer',
  'answerAll',
  'withdraw',
  'giveResult',
  'respond',
])

const disposed = { status: 'closed', reason: 'disposed' } as const

export function disposedError(): CountersignError {
  return new CountersignError('disposed', 'This chat is disposed; make a new client.')
}

/** Why the server would refuse an answer. Checked first, so that the request stays open. */
function faultOf(
  { approved, scope, reason, input, mandate }: ApprovalResponse,
  approval: ToolCallApproval,
  asked: { readonly arguments: string; readonly input?: unknown },
): string | undefined {
  if (typeof approved !== 'boolean') return '`approved` must be true or false.'
  if (reason !== undefined && typeof reason !== 'string') return '`reason` must be a text.'
  const chosen = approval.mandates?.find(({ id }) => id === mandate)
  if (mandate !== undefined && (scope || !chosen || (chosen.decide === 'deny') === approved)) {
    return `The mandate "${String(mandate)}" is not offered for this answer.`
  }
  if (!approved) return undefined
  if (input !== undefined && !approval.allowEdits) {
    return 'The arguments of this call may not be edited; leave `input` out.'
  }
  // Especially `null`: a server would read it as no edit, and run the call with its original arguments
  if (input !== undefined && !isRecord(input)) {
    return '`input` must be an object with all arguments; leave it out if nothing is edited.'
  }
  if (input !== undefined && !isExactJson(asked.arguments)) {
    return 'The arguments of this call may not be edited: not JSON, or a number is too long.'
  }
  const forbidden = input === undefined ? [] : forbiddenEdits(approval.allowEdits, asked.input, input)
  if (forbidden.length > 0) return `These arguments may not be edited: ${forbidden.join(', ')}.`
  if (scope !== undefined && !approval.options.includes(scope)) {
    return `The scope "${String(scope)}" is not offered for this call.`
  }
  return undefined
}

/** `cancel: false` cancels nothing. */
function isCancel<T extends object>(response: T): response is Extract<T, { cancel: true }> {
  return 'cancel' in response && response.cancel === true
}

/** What stands for no fault. A callback that throws returns nothing. */
const accepted = Symbol()

/** Without `checkResponse`, nothing can validate the response, so it is refused. */
const refuseUnchecked: CheckResponse = (_, { responseSchema }) =>
  responseSchema && 'To check answers, give `checkResponse` of "@countersign/client/response-schema".'

/** Top-level keys that were edited although only others may be. */
function forbiddenEdits(allowed: ToolCallApproval['allowEdits'], asked: unknown, input: unknown): string[] {
  if (!Array.isArray(allowed) || !isRecord(asked) || !isRecord(input)) return []
  const keys = new Set([...Object.keys(asked), ...Object.keys(input)])
  return [...keys].filter((key) => !allowed.includes(key) && !sameJson(asked[key], input[key]))
}

async function sendResult({ done }: Run): Promise<SendResult> {
  const end = await done
  if (end.type === 'failed') return { status: 'failed', error: end.error }
  return { status: end.type === 'aborted' ? 'stopped' : 'sent' }
}

function refused(...of: ConstructorParameters<typeof CountersignError>): SendResult {
  return { status: 'refused', error: new CountersignError(...of) }
}

function busy(): SendResult {
  return refused('chat-busy', 'The chat is busy; nothing was sent. Wait, or call stop() first.')
}

function queueFull(maxQueued: number): SendResult {
  const message = `${maxQueued} messages are queued; this one was not sent. Wait, or remove one with cancelQueued().`
  return refused('queue-full', message, { maxQueued })
}

function answersFirst(pending: readonly string[]): SendResult {
  return refused('pending-approvals', 'Answer the open requests first; the message was not sent.', {
    pending,
  })
}
