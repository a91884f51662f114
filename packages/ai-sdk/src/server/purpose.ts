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
  | { readonly kind: 'edit' | 'regenerate'; readonly id: string }
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
  const isPlain = page.said !== undefined && !replaces && !continued && !resume
  const key = { owner: context?.subject ?? null, threadId }
  const stored = (isPlain ? undefined : await readThread(threads, key))?.messages ?? []
  if (resume) checkShown(input.messages, stored)
  const purpose = purposeOf(request, stored)
  return { input: { ...input, ...newsOf(purpose, input.messages) }, purpose }
}

function purposeOf({ input, continued, replaces, page }: ReadRequest, stored: readonly Message[]): Purpose {
  const last = input.messages.findLast(({ role }) => role === 'user')
  const version = last && versionOf(last, stored)
  const isSame = sameJson(version?.content, last?.content)
  const storedId = (id: string | undefined) => {
    const shown = input.messages.find((message) => message.id === id)
    const of = shown && versionOf(shown, stored)
    // With another text, the page shows another version.
    return of && sameJson(of.content, shown?.content) ? of.id : id
  }
  const said = storedId(page.said)
  if (last && !version && !page.isReplyLast) return { kind: 'message', said }
  // The SDK repeats a failed request as if its message were edited.
  if (replaces === 'edit' && version && !isSame) return { kind: 'edit', id: version.id, said }
  // A page that does not show another page's edit can't regenerate its reply.
  const isShown = isSame || version?.id === last?.id
  if (replaces === 'regenerate' && version && isShown) return { kind: 'regenerate', id: version.id, said }
  return { kind: 'go-on', said, asked: continued ? storedId(page.asked) : said }
}

/** What the stored conversation may lack. The SDK keeps the id of an edited message; the new version that is stored gets an id of its own. */
function newsOf(
  purpose: Purpose,
  messages: readonly Message[],
): Pick<RunAgentInput, 'messages' | 'forwardedProps'> {
  const results = messages.filter(({ role }) => role === 'tool')
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  const news = messages.filter(({ role }, at) => role === 'user' && at > spoken)
  switch (purpose.kind) {
    case 'message':
      return { messages: [...results, ...news] }
    case 'edit': {
      const edited = news.slice(-1).map((message) => ({ ...message, id: randomId('msg_') }))
      return { messages: [...results, ...edited], forwardedProps: { countersign: { edit: purpose.id } } }
    }
    case 'regenerate':
      return { messages: results, forwardedProps: { countersign: { regenerate: purpose.id } } }
    case 'go-on':
      return { messages: results }
    default:
      return purpose satisfies never
  }
}

/** The stored message of which this one is a version. */
function versionOf({ id: of }: Message, stored: readonly Message[]): Message | undefined {
  return stored.find(({ id, role, metadata }) => {
    const { versions = [] } = getCountersignMetadata(metadata)
    return role === 'user' && (id === of || (Array.isArray(versions) && versions.includes(of)))
  })
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
