import {
  getCountersignMetadata,
  type Interrupt,
  isRecord,
  type Message,
  type ResumeEntry,
  sameJson,
  type ToolCall,
} from '@countersign/core'
import {
  type Fields,
  fromJson,
  type LangGraphCall,
  type LangGraphInterrupt,
  listOf,
  readCall,
} from './wire.js'

/** One decision that `humanInTheLoopMiddleware` requests, and its call. */
interface Action {
  readonly call: LangGraphCall
  readonly allowed: readonly unknown[]
  readonly message: string | undefined
  readonly argsSchema: Fields | undefined
}

/**
 * An interrupt of the graph, by what it waits for: decisions on calls, all at once and in order; the result of a tool that runs here; or
 * anything else.
 */
export type Question =
  | {
      readonly kind: 'decisions'
      readonly id: string
      readonly actions: readonly Action[]
      /** Whether the server expects `edited_action`, as Python does, or `editedAction`. */
      readonly isSnake: boolean
    }
  | { readonly kind: 'client-tool'; readonly id: string; readonly call: LangGraphCall }
  | { readonly kind: 'generic'; readonly id: string; readonly value: unknown }

/** The value for `command.resume[id]`. */
export interface Answer {
  readonly id: string
  readonly value: unknown
}

/** `calls`: those of the model's last message. `clientTools`: names of the tools that run here. */
export function readQuestion(
  { id, value }: LangGraphInterrupt,
  calls: readonly LangGraphCall[],
  clientTools: ReadonlySet<string>,
): Question {
  const handedOut =
    isRecord(value) && value.type === 'tool' ? readCall(value.toolCall ?? value.tool_call) : undefined
  if (handedOut && clientTools.has(handedOut.name)) return { kind: 'client-tool', id, call: handedOut }
  const isSnake = isRecord(value) && value.action_requests !== undefined
  const actions = isRecord(value) ? readActions(value, calls) : undefined
  return actions ? { kind: 'decisions', id, actions, isSnake } : { kind: 'generic', id, value }
}

/** Requests name no calls: each gets the first remaining call with its name and arguments. If one has none, the result is undefined. */
function readActions(value: Fields, calls: readonly LangGraphCall[]): readonly Action[] | undefined {
  const requests = listOf(value.actionRequests ?? value.action_requests)
  const configs = listOf(value.reviewConfigs ?? value.review_configs)
  const left = [...calls]
  const actions = requests.flatMap((request, at): Action[] => {
    if (!isRecord(request)) return []
    const { name, description } = request
    const found = left.findIndex(
      (call) => call.name === name && sameJson(call.args, request.args ?? request.arguments),
    )
    const [call] = found < 0 ? [] : left.splice(found, 1)
    const config = configOf(configs, at, name)
    const argsSchema = config.argsSchema ?? config.args_schema
    return call
      ? [
          {
            call,
            allowed: listOf(config.allowedDecisions ?? config.allowed_decisions),
            message: typeof description === 'string' ? description : undefined,
            argsSchema: isRecord(argsSchema) ? argsSchema : undefined,
          },
        ]
      : []
  })
  return actions.length > 0 && actions.length === requests.length ? actions : undefined
}

/** There is one per request, or one per name. */
function configOf(configs: readonly unknown[], at: number, name: unknown): Fields {
  const isOf = (config: unknown): config is Fields =>
    isRecord(config) && (config.actionName ?? config.action_name) === name
  const own = configs[at]
  return (isOf(own) ? own : configs.find(isOf)) ?? {}
}

/** The calls that wait for an interrupt's answer. */
export function callsOf(question: Question): readonly LangGraphCall[] {
  switch (question.kind) {
    case 'decisions':
      return question.actions.map(({ call }) => call)
    case 'client-tool':
      return [question.call]
    case 'generic':
      return []
    default:
      return question satisfies never
  }
}

/** Converts to AG-UI interrupts, one per decision. A call of a tool that runs here is not an interrupt. */
export function toInterrupts(question: Question): readonly Interrupt[] {
  switch (question.kind) {
    case 'decisions':
      return question.actions.map((action) => toApproval(question.id, action))
    case 'client-tool':
      return []
    case 'generic':
      return [toGeneric(question)]
    default:
      return question satisfies never
  }
}

function toApproval(id: string, action: Action): Interrupt {
  const { call, allowed, message, argsSchema = { type: 'object' } } = action
  const mayEdit = allowed.includes('edit')
  const options = [
    ...(allowed.includes('reject') ? ['deny'] : []),
    ...(allowed.includes('approve') || mayEdit ? ['once'] : []),
  ]
  return {
    id: approvalId(id, call),
    reason: 'tool_call',
    toolCallId: call.id,
    ...(message !== undefined && { message }),
    responseSchema: {
      type: 'object',
      properties: { approved: { type: 'boolean' }, ...(mayEdit && { editedArgs: argsSchema }) },
      required: ['approved'],
    },
    // The call to approve: a request for any other call than the one shown can't be answered. The token is returned with the answer.
    metadata: {
      countersign: {
        options,
        allowEdits: mayEdit,
        toolName: call.name,
        input: call.args,
        token: tokenOf(action),
      },
    },
  }
}

/** The value that the graph passed to `interrupt` is in the metadata, and is returned with the answer. */
function toGeneric({ id, value }: { readonly id: string; readonly value: unknown }): Interrupt {
  const { question, message = question } = isRecord(value) ? value : {}
  const text = typeof value === 'string' ? value : message
  return {
    id,
    reason: 'input_required',
    ...(typeof text === 'string' && { message: text }),
    metadata: { 'langgraph:value': value, countersign: { resume: { 'langgraph:value': value } } },
  }
}

function approvalId(id: string, call: LangGraphCall): string {
  return `${id}:${call.id}`
}

/** What the user was asked. A graph may ask twice about one call under one id, and an answer is for what the user saw. */
function tokenOf({ call, message }: Action): string {
  return JSON.stringify([call.name, call.args, message])
}

function isFor(action: Action, { metadata }: ResumeEntry): boolean {
  const { token } = getCountersignMetadata(metadata)
  return typeof token === 'string' && sameJson(fromJson(token), fromJson(tokenOf(action)))
}

/**
 * The answer to an interrupt, from a request. Several decisions are answered together, so once one is decided, undecided ones are
 * rejected. `undefined`: the request has no answer for it.
 */
export function answerTo(
  question: Question,
  {
    resume = [],
    messages,
  }: { readonly resume?: readonly ResumeEntry[] | undefined; readonly messages: readonly Message[] },
): Answer | undefined {
  const { id } = question
  switch (question.kind) {
    case 'decisions': {
      const entries = question.actions.map((action) =>
        resume.find((one) => one.interruptId === approvalId(id, action.call) && isFor(action, one)),
      )
      // The user did not see one of these requests, so all of them are sent again.
      if (entries.includes(undefined)) return undefined
      if (!entries.some((entry) => entry?.status === 'resolved')) return undefined
      const decisions = question.actions.map((action, at) =>
        decisionOf(action, entries[at], question.isSnake),
      )
      return { id, value: { decisions } }
    }
    case 'client-tool': {
      const { call } = question
      const made = messages.findLastIndex(
        (one) => one.role === 'assistant' && hasCall(one.toolCalls, call.id),
      )
      // Providers repeat ids: a result before the call is that of an earlier one.
      const result = messages
        .slice(made + 1)
        .findLast((one) => one.role === 'tool' && one.toolCallId === call.id)
      return result ? { id, value: outputOf(result) } : undefined
    }
    case 'generic': {
      const entry = resume.find(({ interruptId }) => interruptId === id)
      // A graph may interrupt twice under one id, and the answer is for the value that the user saw.
      if (!entry || !sameJson(entry.metadata?.['langgraph:value'], question.value)) return undefined
      return { id, value: entry.status === 'resolved' ? entry.payload : null }
    }
    default:
      return question satisfies never
  }
}

function hasCall(calls: readonly ToolCall[] = [], id: string): boolean {
  return calls.some((call) => call.id === id)
}

const leftOpen = 'The user continued without answering.'

function decisionOf({ call, allowed }: Action, entry: ResumeEntry | undefined, isSnake: boolean): Fields {
  const { approved, editedArgs, reason } = isRecord(entry?.payload) ? entry.payload : {}
  if (entry?.status !== 'resolved') return { type: 'reject', message: leftOpen }
  if (!approved) return { type: 'reject', ...(typeof reason === 'string' && { message: reason }) }
  if (editedArgs === undefined && allowed.includes('approve')) return { type: 'approve' }
  const action = { name: call.name, args: editedArgs ?? call.args }
  return { type: 'edit', ...(isSnake ? { edited_action: action } : { editedAction: action }) }
}

/** The output of a tool that ran here: its result, or `{ error }`. */
function outputOf(result: Message): unknown {
  if (result.role !== 'tool') return null
  if (result.error !== undefined) return { error: result.error }
  return typeof result.content === 'string' ? fromJson(result.content) : result.content
}

/** Tells the model about calls that nobody will answer, so that the conversation can continue. */
export function closeCalls(toolCallIds: readonly string[]): readonly Fields[] {
  return toolCallIds.map((id) => ({ type: 'tool', tool_call_id: id, content: leftOpen, status: 'error' }))
}
