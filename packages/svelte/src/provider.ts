import {
  type ChatClient,
  type ChatClientOptions,
  type ChatClients,
  createChatClients,
  type ToolMap,
} from '@countersign/client'
import { getContext, setContext } from 'svelte'
import { createView, type UseChat } from './chat.js'
import { createFinding } from './reading.js'

/** `{ client }` shares an existing client; options create one, or change those of the provided client of that `threadId`. */
export type UseChatOptions<Tools extends ToolMap = ToolMap> =
  | { readonly client: ChatClient<Tools> }
  | (Partial<ChatClientOptions<Tools>> & { readonly client?: undefined })

/** The options themselves, which may contain `$state`, or a function that reads them. */
export type Given<Tools extends ToolMap> = UseChatOptions<Tools> | (() => UseChatOptions<Tools>)

/** A chat and the clients of its threads. `find` looks them up; `follow` also applies their current options. */
export interface Own<Tools extends ToolMap> {
  readonly chat: UseChat<Tools>
  readonly find: () => ChatClients<Tools>
  readonly follow: () => ChatClients<Tools>
}

const key = Symbol('countersign')

/**
 * Provides one chat to the components below, so that `createChat()` needs no arguments there, and returns it. Another
 * `client` or `threadId` is another chat; changes of all other options are applied. Call it during component initialization.
 */
export function setChat<Tools extends ToolMap = ToolMap>(options: Given<Tools>): UseChat<Tools> {
  return setContext(key, createOwn(options)).chat
}

/** The chat of the nearest `setChat` above. Throws `invalid-option` if there is none. */
export function getChat<Tools extends ToolMap = ToolMap>(): UseChat<Tools> {
  return (getProvided<Tools>() ?? createOwn<Tools>({})).chat
}

/** A context cannot know the tools' types; consumers specify them. */
export function getProvided<Tools extends ToolMap>(): Own<Tools> | undefined {
  try {
    return getContext<Own<Tools> | undefined>(key)
  } catch {
    // Outside components, for example in a shared module, nothing is provided.
    return undefined
  }
}

/** A chat with its own clients. Clients of earlier threads are kept, with their runs. */
export function createOwn<Tools extends ToolMap>(options: Given<Tools>): Own<Tools> {
  const read = reader(options)
  let last: (Pick<Settings<Tools>, 'client' | 'threadId'> & { clients: ChatClients<Tools> }) | undefined
  const find = () => {
    const { client, ...own } = read()
    if (last && last.client === client && last.threadId === own.threadId) return last.clients
    const source = client ?? own
    const clients = last ? last.clients.switchTo(source) : createChatClients(source)
    last = { client, threadId: own.threadId, clients }
    return clients
  }
  const follow = () => {
    const { client: _, ...own } = read()
    const clients = find()
    clients.setOptions(own)
    return clients
  }
  const getClients = createFinding(find, follow)
  const chat = createView(
    () => getClients().main,
    () => follow().main,
  )
  return { chat, find, follow }
}

type Settings<Tools extends ToolMap> = Partial<ChatClientOptions<Tools>> & {
  readonly client?: ChatClient<Tools> | undefined
}

export function reader<Tools extends ToolMap>(options: Given<Tools>): () => Settings<Tools> {
  return () => (typeof options === 'function' ? options() : options) ?? {}
}
