import type { Message, RunAgentInput } from '@countersign/core'
import { type Answer, answerTo, givenIn, type Question } from './questions.js'
import { type Fields, type LangGraphMessage, type LangGraphState, listOf } from './wire.js'

/** The standing of a thread, known from its last run or from the server's state. */
export interface Standing {
  readonly questions: readonly Question[]
  /** Calls without a result. */
  readonly openCalls: readonly string[]
  /** The user's last message that the server has, if its whole state was not read. */
  readonly said: string | undefined
}

/** One run of the graph. */
export type Step =
  /** Answers its interrupts. */
  | { readonly type: 'resume'; readonly answers: readonly Answer[] }
  /** Starts it with new messages. `abandoned`: calls that get a final result before them. */
  | { readonly type: 'input'; readonly messages: readonly Fields[]; readonly abandoned: readonly string[] }
  /** Takes the remaining steps. */
  | { readonly type: 'go-on' }

/**
 * The steps of a request for a server that stores the conversation: answers first, then the user's new messages. `undefined` if,
 * judging by this standing, the server has everything.
 */
export function planNew(
  input: RunAgentInput,
  { questions, openCalls, said }: Standing,
  known?: LangGraphState,
): readonly Step[] | undefined {
  const given = givenIn(input)
  const answers = questions.flatMap((question) => answerTo(question, given) ?? [])
  const has = new Set(known?.messages.map(({ id }) => id))
  const spoken = trailing(input.messages).filter(({ id }) => id !== said && !has.has(id))
  const steps: Step[] = []
  if (answers.length > 0) steps.push({ type: 'resume', answers })
  if (spoken.length > 0) steps.push({ type: 'input', messages: spoken.map(toHuman), abandoned: openCalls })
  return steps.length > 0 ? steps : undefined
}

/**
 * The steps of a request without anything new: the remaining steps, or a new reply to the user's last message, if the user wants
 * another one. `isBroken`: the last run was not read to its end, so its reply was never seen.
 */
export function planAgain(
  { messages }: RunAgentInput,
  state: LangGraphState,
  isBroken: boolean,
): readonly Step[] {
  const last = messages.at(-1)
  const at = last?.role === 'user' ? state.messages.findIndex(({ id }) => id === last.id) : -1
  const unwanted = at < 0 ? [] : state.messages.slice(at + 1)
  if (last && unwanted.length > 0 && !isBroken)
    return [{ type: 'input', messages: [...unwanted.map(toRemoval), toHuman(last)], abandoned: [] }]
  return state.isUnfinished && state.interrupts.length === 0 ? [{ type: 'go-on' }] : []
}

/** The user's messages since the assistant's last one. */
function trailing(messages: readonly Message[]): readonly Message[] {
  const last = messages.findLastIndex(({ role }) => role !== 'user')
  return messages.slice(last + 1)
}

/** The calls of the model's last message that have no result. */
export function openCallsOf(messages: readonly LangGraphMessage[]): readonly string[] {
  const answered = new Set(messages.flatMap((one) => (one.type === 'tool' ? [one.toolCallId] : [])))
  return lastCallsOf(messages).flatMap(({ id }) => (answered.has(id) ? [] : [id]))
}

export function lastCallsOf(messages: readonly LangGraphMessage[]) {
  const last = messages.findLast((one) => one.type === 'ai')
  return last?.type === 'ai' ? last.calls : []
}

/** LangGraph's `add_messages` removes the message. */
function toRemoval({ id }: LangGraphMessage): Fields {
  return { type: 'remove', id }
}

/** Includes the id, so that a message that is sent twice is stored once. */
function toHuman({ id, content }: Message): Fields {
  return { type: 'human', id, content: typeof content === 'string' ? content : listOf(content).map(toBlock) }
}

/** Converts a part of a message to LangChain's content blocks. */
function toBlock(part: unknown): unknown {
  const { type, text, source }: Fields = Object(part)
  if (type === 'text') return { type, text }
  const { type: kind, value, mimeType }: Fields = Object(source)
  const url = kind === 'data' ? `data:${mimeType};base64,${value}` : value
  if (type === 'image') return { type: 'image_url', image_url: { url } }
  const from = kind === 'data' ? { source_type: 'base64', data: value } : { source_type: 'url', url: value }
  return { type: type === 'audio' ? type : 'file', ...from, mime_type: mimeType }
}
