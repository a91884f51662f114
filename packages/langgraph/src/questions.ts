import {
  getCountersignMetadata,
  type Interrupt,
  isRecord,
  type Message,
  type ResumeEntry,
  type RunAgentInput,
  sameJson,
} from '@countersign/core'
import {
  type Fields,
  fromJson,
  grouped,
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
export function readQuestions(
  interrupts: Iterable<LangGraphInterrupt>,
  calls: readonly LangGraphCall[],
  clientTools: ReadonlySet<string>,
): readonly Question[] {
  const found = grouped(calls, ({ name, args }) => keyOf(name, args))
  return [...interrupts].map((one) => readQuestion(one, found, clientTools))
}

function readQuestion(
  { id, value }: LangGraphInterrupt,
  calls: CallsByKey,
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
function readActions(value: Fields, calls: CallsByKey): readonly Action[] | undefined {
  const requests = listOf(value.actionRequests ?? value.action_requests)
  const configs = listOf(value.reviewConfigs ?? value.review_configs)
  const byName = new Map(configs.toReversed().map((config) => [nameOf(config), config]))
  const taken = new Map<string, number>()
  const actions = requests.flatMap((request, at): Action[] => {
    if (!isRecord(request)) return []
    const { name, description } = request
    const args = request.args ?? request.arguments
    const key = keyOf(name, args)
    const before = taken.get(key) ?? 0
    taken.set(key, before + 1)
    const call = calls.get(key)?.[before]
    // There is one per request, or one per name.
    const own = nameOf(configs[at]) === name ? configs[at] : byName.get(name)
    const config = isRecord(own) ? own : {}
    const argsSchema = config.argsSchema ?? config.args_schema
    return call && sameJson(call.args, args)
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

function nameOf(config: unknown): unknown {
  return isRecord(config) ? (config.actionName ?? config.action_name) : undefined
}

type CallsByKey = ReadonlyMap<string, readonly LangGraphCall[]>

/** The same for the same name and the same JSON, in whatever order its members are; only the name for what is too deep to print. */
function keyOf(name: unknown, args: unknown): string {
  const ordered = (_: string, value: unknown) =>
    isRecord(value)
      ? Object.fromEntries(
          Object.keys(value)
            .sort()
            .map((key) => [key, value[key]]),
        )
      : value
  try {
    return JSON.stringify([name, args], ordered)
  } catch {
    return JSON.stringify([name])
  }
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

/** The answers in a request, by the ids that questions have. */
export interface Given {
  readonly resume: ReadonlyMap<string, readonly ResumeEntry[]>
  /** Providers repeat ids: results before the last call with an id are those of earlier ones. */
  readonly results: ReadonlyMap<string, Message>
}

export function givenIn({ resume = [], messages }: Pick<RunAgentInput, 'resume' | 'messages'>): Given {
  const results = new Map<string, Message>()
  for (const message of messages) {
    if (message.role === 'tool') results.set(message.toolCallId, message)
    if (message.role === 'assistant') for (const { id } of message.toolCalls ?? []) results.delete(id)
  }
  return { resume: grouped(resume, ({ interruptId }) => interruptId), results }
}

/**
 * The answer to an interrupt, from a request. Several decisions are answered together, so once one is decided, undecided ones are
 * rejected. `undefined`: the request has no answer for it.
 */
export function answerTo(question: Question, { resume, results }: Given): Answer | undefined {
  const { id } = question
  switch (question.kind) {
    case 'decisions': {
      const entries = question.actions.map((action) =>
        resume.get(approvalId(id, action.call))?.find((one) => isFor(action, one)),
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
      const result = results.get(question.call.id)
      return result ? { id, value: outputOf(result) } : undefined
    }
    case 'generic': {
      const [entry] = resume.get(id) ?? []
      // A graph may interrupt twice under one id, and the answer is for the value that the user saw.
      if (!entry || !sameJson(entry.metadata?.['langgraph:value'], question.value)) return undefined
      return { id, value: entry.status === 'resolved' ? entry.payload : null }
    }
    default:
      return question satisfies never
  }
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
