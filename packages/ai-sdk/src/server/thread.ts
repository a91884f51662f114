import { type Message, type MessagePart, omitUndefined, type UIMessage } from '@countersign/core'
import { type Agent, loadThread } from '@countersign/server'
import { aiSdkOf } from '../mark.js'
import { type AiSdkMessage, type AiSdkPart, type AiSdkTool, isToolPart, stepsOf } from '../message.js'
import { toAiSdkMessages } from '../to-messages.js'

/**
 * Loads a conversation that the server keeps, as the `messages` of an AI SDK chat with that id. A chat with `resume: true` then follows the
 * run that is open ({@link resumeAiSdkChat}). Empty if this user has no such conversation.
 *
 * @throws CountersignError `invalid-option` if the agent has no threads; `ledger-unavailable`
 */
export async function loadAiSdkChat(
  agent: Agent,
  { subject, chatId }: { readonly subject?: string | undefined; readonly chatId: string },
): Promise<AiSdkMessage[]> {
  const thread = await loadThread(agent, { subject, threadId: chatId })
  const messages = thread?.messages ?? []
  const waiting = new Set(callsLeftToClient(messages))
  return toAiSdkMessages(joined(messages)).map((message) => {
    const parts = message.parts.map((part) =>
      isToolPart(part) && waiting.has(part.toolCallId) ? openAgain(part) : part,
    )
    const last = parts.findLastIndex(({ type }) => type === 'step-start') + 1
    return { ...message, parts: [...parts.slice(0, last), ...withDenialsKept(parts.slice(last))] }
  })
}

/** As a stream says it: the SDK sends the output of a client tool only if each denial of its step is an answer that was not sent. */
function withDenialsKept(step: readonly AiSdkPart[]): readonly AiSdkPart[] {
  const isWaiting = step.some(
    (part) => isToolPart(part) && ['input-available', 'approval-requested'].includes(part.state),
  )
  return step.map((part) =>
    isWaiting && isToolPart(part) && part.state === 'output-denied' && part.approval
      ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: false } }
      : part,
  )
}

/** The id of the assistant message with the reply to the last user message: the same for every run that adds to it. */
export function replyId(messages: readonly Pick<Message, 'id' | 'role'>[]): string {
  return `reply_${messages.findLast(({ role }) => role === 'user')?.id ?? ''}`
}

/** The id of the user message that this message replies to. */
export function repliedTo({ id }: AiSdkMessage): string | undefined {
  return id.startsWith('reply_') ? id.slice('reply_'.length) : undefined
}

/**
 * What a page lacks of a stored reply because a response was lost: results of calls that still wait on the page, and everything behind what it
 * shows. If it can't be told how far that is, only the calls that are open. `asked`: the id of the user message that the reply answers.
 */
export function lackedBy(
  continued: AiSdkMessage | undefined,
  asked: string | undefined,
  messages: readonly Message[],
): Message[] {
  const from = messages.findLastIndex(({ role }) => role === 'user')
  const reply = messages.slice(from + 1)
  const steps = continued ? stepsOf(continued) : []
  const calls = steps.flat().filter(isToolPart).filter(isWhole)
  const shown = idsOf(calls)
  const waiting = idsOf(calls.filter(({ state }) => !state.startsWith('output-')))
  const isAwaited = (message: Message) => message.role === 'tool' && waiting.has(message.toolCallId)
  const isThisReply =
    calls.length > 0 ? reply.some((message) => hasCall(message, shown)) : asked === messages[from]?.id
  // Another page has answered them, and gone on.
  const before = messages.slice(0, from).filter(isAwaited)
  if (!isThisReply) return [...before, ...reply.filter(isAwaited)]
  const ended = new Set(reply.flatMap((message) => (message.role === 'tool' ? message.toolCallId : [])))
  const last = lastShown(steps, reply)
  const behind = reply.flatMap((message, at): Message[] => {
    if (message.role === 'tool' && shown.has(message.toolCallId)) return isAwaited(message) ? [message] : []
    if (last === undefined) return restOf(message, textOf(message), (id) => !shown.has(id) && !ended.has(id))
    if (at === last.at) return restOf(message, last.text, (id) => !shown.has(id))
    return at > last.at ? [message] : []
  })
  return [...before, ...behind]
}

interface LastShown {
  readonly at: number
  readonly text: string
}

/** A page that shows so many steps which are not stored shows another reply: to look for more of them takes time only. */
const MAX_MISSED = 64

/** The message of a reply that a page shows last; at -1 if it shows none, undefined if that can't be told. Each step is one message. */
function lastShown(
  steps: readonly (readonly AiSdkPart[])[],
  reply: readonly Message[],
): LastShown | undefined {
  let next = 0
  let missed = 0
  let last: LastShown | undefined = { at: -1, text: '' }
  for (const step of steps) {
    const begun = idsOf(step.filter(isToolPart))
    const text = step.map((part) => (part.type === 'text' ? part.text : '')).join('')
    if (begun.size === 0 && text === '') continue
    const isOf = (message: Message) =>
      begun.size > 0 ? hasCall(message, begun) : textOf(message).startsWith(text)
    const at = indexFrom(reply, next, isOf)
    last = at < 0 ? undefined : { at, text }
    if (last) next = at + 1
    else if (++missed === MAX_MISSED) return undefined
  }
  return last
}

function indexFrom<T>(list: readonly T[], from: number, isIt: (item: T) => boolean): number {
  for (let at = from; at < list.length; at++) if (isIt(list[at] as T)) return at
  return -1
}

/** The message without the text and the calls that the page shows; none if nothing is left. */
function restOf(message: Message, shown: string, isLacked: (callId: string) => boolean): Message[] {
  const content = textOf(message).startsWith(shown) ? textOf(message).slice(shown.length) : ''
  const toolCalls = callsOf(message).filter(({ id }) => isLacked(id))
  return content !== '' || toolCalls.length > 0
    ? [{ id: message.id, role: 'assistant', content, toolCalls }]
    : []
}

function idsOf(calls: readonly AiSdkTool[]): ReadonlySet<string> {
  return new Set(calls.map(({ toolCallId }) => toolCallId))
}

function hasCall(message: Message, ids: ReadonlySet<string>): boolean {
  return callsOf(message).some(({ id }) => ids.has(id))
}

function isWhole({ state }: AiSdkTool): boolean {
  return state !== 'input-streaming'
}

function textOf(message: Message): string {
  return message.role === 'assistant' ? (message.content ?? '') : ''
}

function callsOf(message: Message) {
  return message.role === 'assistant' ? (message.toolCalls ?? []) : []
}

/** The AI SDK has one message for a whole reply: its messages become the steps of one. */
function joined(messages: readonly UIMessage[]): UIMessage[] {
  let user = 0
  let id = replyId([])
  return messages.map((message, at) => {
    if (message.role === 'user') [user, id] = [at, replyId([message])]
    if (message.role !== 'assistant') return message
    const mark = { ...aiSdkOf(message.metadata), id, step: at - user }
    return { ...message, parts: message.parts.map(signed), metadata: { ...message.metadata, aiSdk: mark } }
  })
}

/** What the stream of a request says: the token is the `signature`, and its terms are described. */
function signed(part: MessagePart): MessagePart {
  if (part.type !== 'tool-call' || part.approval === undefined) return part
  const { token: signature, message: requestReason, options, allowEdits, expiresAt } = part.approval
  const { display, mandates, preview, previous } = part.approval
  const descriptor = omitUndefined({ options, allowEdits, expiresAt, display, mandates, preview, previous })
  const token = JSON.stringify(omitUndefined({ signature, requestReason, descriptor }))
  return { ...part, approval: { ...part.approval, token } }
}

function callsLeftToClient(messages: readonly UIMessage[]): string[] {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  return messages
    .slice(last + 1)
    .flatMap(({ parts }) =>
      parts.flatMap((part) =>
        part.type === 'tool-call' && part.state === 'input-complete' ? [part.id] : [],
      ),
    )
}

/** Otherwise it would count as failed: a route of the AI SDK accepts no call without a result. */
function openAgain(part: AiSdkPart): AiSdkPart {
  if (!isToolPart(part)) return part
  const { errorText: _, ...call } = part
  return { ...call, state: 'input-available' }
}
