import type { Message, RunAgentInput } from '@countersign/core'
import { type Answer, answerTo, type Question } from './questions.js'
import { type Fields, type LangGraphMessage, type LangGraphState, listOf } from './wire.js'

/** How a thread stands, by what was read of its last run or by what the server says of it. */
export interface Standing {
  readonly questions: readonly Question[]
  /** Calls without a result. */
  readonly openCalls: readonly string[]
  /** The last message of the person that the server has, where its whole state was not asked for. */
  readonly said: string | undefined
}

/** One run of the graph. */
export type Step =
  /** Answers its interrupts. */
  | { readonly type: 'resume'; readonly answers: readonly Answer[] }
  /** Begins it with new messages. `abandoned`: calls that get their last word before them. */
  | { readonly type: 'input'; readonly messages: readonly Fields[]; readonly abandoned: readonly string[] }
  /** Takes the steps that are left. */
  | { readonly type: 'go-on' }

/**
 * What a request is to the server that keeps the conversation: answers first, then what the person has said since. `undefined`: nothing
 * that the server has not had, as far as this standing tells.
 */
export function planNew(
  input: RunAgentInput,
  { questions, openCalls, said }: Standing,
  known?: LangGraphState,
): readonly Step[] | undefined {
  const answers = questions.flatMap((question) => answerTo(question, input) ?? [])
  const has = new Set(known?.messages.map(({ id }) => id))
  const spoken = trailing(input.messages).filter(({ id }) => id !== said && !has.has(id))
  const steps: Step[] = []
  if (answers.length > 0) steps.push({ type: 'resume', answers })
  if (spoken.length > 0) steps.push({ type: 'input', messages: spoken.map(toHuman), abandoned: openCalls })
  return steps.length > 0 ? steps : undefined
}

/**
 * What there is to run for a request that brings nothing new: what was left, or once more the answer to what the person said last, where
 * they do not want the one that is there. `isBroken`: the last run was not read to its end, so its answer was never seen.
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

/** What the person said since the assistant spoke. */
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

/** LangGraph's `add_messages` takes out what it is told to. */
function toRemoval({ id }: LangGraphMessage): Fields {
  return { type: 'remove', id }
}

/** Its id goes along: a message that comes twice is one. */
function toHuman({ id, content }: Message): Fields {
  return { type: 'human', id, content: typeof content === 'string' ? content : listOf(content).map(toBlock) }
}

/** A part of a message as LangChain's content blocks have it. */
function toBlock(part: unknown): unknown {
  const { type, text, source }: Fields = Object(part)
  if (type === 'text') return { type, text }
  const { type: kind, value, mimeType }: Fields = Object(source)
  const url = kind === 'data' ? `data:${mimeType};base64,${value}` : value
  if (type === 'image') return { type: 'image_url', image_url: { url } }
  const from = kind === 'data' ? { source_type: 'base64', data: value } : { source_type: 'url', url: value }
  return { type: type === 'audio' ? type : 'file', ...from, mime_type: mimeType }
}
