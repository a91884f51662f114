import {
  CountersignError,
  getCountersignMetadata,
  type Message,
  parseJson,
  type RunAgentInput,
  sameJson,
} from '@countersign/core'
import type { Agent, ChatOptions } from '@countersign/server'
import { findUnansweredCalls, randomId, readThread } from '@countersign/server/http-kit'
import type { ReadRequest } from './request.js'

/** What a request wants of a stored conversation. The ids are stored ones. */
export type Purpose = {
  /** The last user message of the page. */
  readonly said: string | undefined
} & (
  | { readonly kind: 'message' }
  /** `edited`: the page's message, which replaces the stored one. */
  | { readonly kind: 'edit'; readonly id: string; readonly edited: Message }
  | { readonly kind: 'regenerate'; readonly id: string }
  /** To go on with a reply, by answers, results or a retry. `asked`: the message that it replies to. */
  | { readonly kind: 'go-on'; readonly asked: string | undefined }
)

/**
 * The request for an agent with threads: only what its stored conversation may lack.
 *
 * @throws CountersignError `approval-tampered` (409) if an answered call is not shown as it is stored: the user saw other arguments.
 */
export async function inputFor(
  { threads }: Agent,
  request: ReadRequest,
  context: ChatOptions['context'],
): Promise<{ readonly input: RunAgentInput; readonly purpose: Purpose }> {
  const { input, continued, replaces, page } = request
  const { threadId, resume } = input
  if (threads === undefined) return { input, purpose: { kind: 'message', said: page.said } }
  const isPlain = newsIn(input.messages).length === 1 && !replaces && !continued && !resume
  const key = { owner: context?.subject ?? null, threadId }
  const stored = (isPlain ? undefined : await readThread(threads, key))?.messages ?? []
  if (resume) checkShown(input.messages, stored)
  const purpose = purposeOf(request, stored)
  const { messages, inPlaceOf } = newsOf(purpose, input.messages)
  // The agent refuses the request if it does not have the message that was replied to.
  const countersign = { ...inPlaceOf, replied: repliedIn(input.messages) }
  return { input: { ...input, messages, forwardedProps: { countersign } }, purpose }
}

function purposeOf({ input, continued, replaces, page }: ReadRequest, stored: readonly Message[]): Purpose {
  const { messages } = input
  const versions = versionsOf(stored)
  // With another text, the page shows another version.
  const isSame = ({ id, content }: Message) => sameJson(versions.get(id)?.content, content)
  const storedId = (id: string | undefined) => {
    const shown = messages.find((message) => message.id === id)
    return shown && isSame(shown) ? versions.get(shown.id)?.id : id
  }
  const said = storedId(page.said)
  const rest = { kind: 'go-on', said, asked: continued ? storedId(page.asked) : said } as const
  const last = messages.findLast(({ role }) => role === 'user')
  const id = last && versions.get(last.id)?.id
  if (last === undefined || (id === undefined && page.isReplyLast)) return rest
  if (id === undefined) {
    const edited = newsIn(messages).find((message) => versions.has(message.id) && !isSame(message))
    if (edited === undefined) return { kind: 'message', said }
    // The request with this edit was lost. A version with another id may be another page's, which is to stay.
    const isOwn = versions.get(edited.id)?.id === edited.id
    return isOwn ? { kind: 'edit', id: edited.id, edited, said } : rest
  }
  // The SDK repeats a failed request as if its message were edited.
  if (replaces === 'edit' && !isSame(last)) return { kind: 'edit', id, edited: last, said }
  // A page that does not show another page's edit can't regenerate its reply.
  if (replaces === 'regenerate' && (isSame(last) || id === last.id)) return { kind: 'regenerate', id, said }
  return rest
}

/** What the stored conversation may lack. The SDK keeps the id of an edited message; the new version that is stored gets an id of its own. */
function newsOf(
  purpose: Purpose,
  messages: readonly Message[],
): {
  readonly messages: Message[]
  readonly inPlaceOf?: { readonly edit: string } | { readonly regenerate: string }
} {
  const results = messages.filter(({ role }) => role === 'tool')
  const news = newsIn(messages)
  switch (purpose.kind) {
    case 'message':
      return { messages: [...results, ...news] }
    case 'edit': {
      const edited = { ...purpose.edited, id: randomId('msg_') }
      const behind = news.slice(news.indexOf(purpose.edited) + 1)
      return { messages: [...results, edited, ...behind], inPlaceOf: { edit: purpose.id } }
    }
    case 'regenerate':
      return { messages: results, inPlaceOf: { regenerate: purpose.id } }
    case 'go-on':
      return { messages: results }
    default:
      return purpose satisfies never
  }
}

/** The last user message to which the page shows a reply. */
function repliedIn(messages: readonly Message[]): string | undefined {
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages.slice(0, Math.max(spoken, 0)).findLast(({ role }) => role === 'user')?.id
}

/** The user messages at the end of a page. */
function newsIn(messages: readonly Message[]): readonly Message[] {
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages.filter(({ role }, at) => role === 'user' && at > spoken)
}

/** The stored messages of the user, by their ids and those of their other versions. */
function versionsOf(stored: readonly Message[]): ReadonlyMap<unknown, Message> {
  const found = new Map<unknown, Message>()
  for (const message of stored) {
    if (message.role !== 'user') continue
    const { versions } = getCountersignMetadata(message.metadata)
    for (const id of [message.id, ...(Array.isArray(versions) ? versions : [])])
      if (!found.has(id)) found.set(id, message)
  }
  return found
}

/** The agent does not get the calls of the page: it takes those that are stored. */
function checkShown(shown: readonly Message[], stored: readonly Message[]): void {
  const open = new Map(findUnansweredCalls(stored).map(({ call }) => [call.id, call]))
  for (const { call } of findUnansweredCalls(shown)) {
    const other = open.get(call.id)?.function
    const { name, arguments: input } = call.function
    if (!other || (other.name === name && sameJson(parseJson(other.arguments), parseJson(input)))) continue
    const message = `The call ${call.id} is stored with other arguments than this page shows. Load the conversation again.`
    throw new CountersignError('approval-tampered', message, { status: 409, toolCallId: call.id })
  }
}
