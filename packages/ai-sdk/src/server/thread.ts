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
  return toAiSdkMessages(joined(messages)).map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      isToolPart(part) && waiting.has(part.toolCallId) ? openAgain(part) : part,
    ),
  }))
}

/** The id of the assistant message with the reply to the last user message: the same for every run that adds to it. */
export function replyId(messages: readonly Pick<Message, 'id' | 'role'>[]): string {
  return `reply_${messages.findLast(({ role }) => role === 'user')?.id ?? ''}`
}

/**
 * What a page lacks of a stored reply because a response was lost: results of calls that still wait on the page, and everything behind the
 * last step that it shows. Where it can't be told what that step is, only the calls that are open. `asked`: the id of the user message that the
 * reply answers.
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
  const shown = new Set(calls.map(({ toolCallId }) => toolCallId))
  const open = calls.filter(({ state }) => !state.startsWith('output-'))
  const waiting = new Set(open.map(({ toolCallId }) => toolCallId))
  const called = reply.findLastIndex((message) => callsOf(message).some(({ id }) => shown.has(id)))
  const isThisReply = called >= 0 || (calls.length === 0 && asked === messages[from]?.id)
  const step = steps.findLast((parts) => parts.some(isToolPart) || saidIn(parts) !== '') ?? []
  const begun = new Set(step.flatMap((part) => (isToolPart(part) ? part.toolCallId : [])))
  const text = saidIn(step)
  const last =
    begun.size > 0
      ? reply.findLastIndex((message) => callsOf(message).some(({ id }) => begun.has(id)))
      : reply.findIndex((message, at) => at > called && text !== '' && textOf(message).startsWith(text))
  const isKnown = isThisReply && (last >= 0 || step.length === 0)
  // Another page has answered them, and gone on.
  const before = messages
    .slice(0, from)
    .filter((message) => message.role === 'tool' && waiting.has(message.toolCallId))
  const ended = new Set(reply.flatMap((message) => (message.role === 'tool' ? message.toolCallId : [])))
  const behind = reply.flatMap((message, at): Message[] => {
    if (message.role === 'tool' && shown.has(message.toolCallId))
      return waiting.has(message.toolCallId) ? [message] : []
    if (isKnown && at > last) return [message]
    const isLast = isKnown && at === last
    if (!isThisReply || (isKnown && !isLast)) return []
    const content = isLast && textOf(message).startsWith(text) ? textOf(message).slice(text.length) : ''
    const toolCalls = callsOf(message).filter(({ id }) => !shown.has(id) && (isLast || !ended.has(id)))
    return content !== '' || toolCalls.length > 0
      ? [{ id: message.id, role: 'assistant', content, toolCalls }]
      : []
  })
  return [...before, ...behind]
}

function isWhole({ state }: AiSdkTool): boolean {
  return state !== 'input-streaming'
}

function saidIn(parts: readonly AiSdkPart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
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
  return messages.map((message, at) => {
    if (message.role === 'user') user = at
    if (message.role !== 'assistant') return message
    const mark = { ...aiSdkOf(message.metadata), id: replyId(messages.slice(0, user + 1)), step: at - user }
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
