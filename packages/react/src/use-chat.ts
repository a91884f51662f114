import {
  type ChatActions,
  ChatClient,
  type ChatClientOptions,
  type ChatSnapshot,
  type ToolMap,
} from '@countersign/client'
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { useClients } from './provider.js'

/** What `useChat` gives: the snapshot's fields, the actions (always the same functions), and the client itself. */
export type UseChat<Tools extends ToolMap = ToolMap> = ChatSnapshot<Tools> &
  ChatActions<Tools> & { readonly client: ChatClient<Tools> }

/** `{ client }` shares a client you made; options make one, or change those of the provider's client of that `threadId`. */
export type UseChatOptions<Tools extends ToolMap = ToolMap> =
  | { readonly client: ChatClient<Tools> }
  | Partial<ChatClientOptions<Tools>>

/**
 * The chat of this component. `useChat()` reads the provider; `useChat({ client })` shares a client; `useChat(options)` makes one per
 * mount, or, under a provider, takes the provider's client of that `threadId`, and follows the options. Another `threadId` is another
 * client, never a reset. Unmounting leaves the run alone.
 */
export function useChat<Tools extends ToolMap = ToolMap>(options?: UseChatOptions<Tools>): UseChat<Tools> {
  const client = useChatClient(options)
  const snapshot = useSyncExternalStore(client.subscribe, client.getSnapshot, client.getServerSnapshot)
  return useMemo(() => ({ ...snapshot, ...client.actions, client }), [snapshot, client])
}

/** The client itself, for those who subscribe on their own. */
export function useChatClient<Tools extends ToolMap = ToolMap>(
  options: UseChatOptions<Tools> = {},
): ChatClient<Tools> {
  const clients = useClients()
  const shared = 'client' in options ? options.client : undefined
  const own: Partial<ChatClientOptions<Tools>> = 'client' in options ? {} : options
  const { threadId } = own
  const find = () => ({ clients, shared, threadId, client: shared ?? findClient(clients, own) })
  const [found, refind] = useState(find)
  const stale = found.clients !== clients || found.shared !== shared || found.threadId !== threadId
  const current = stale ? find() : found
  if (stale) refind(current)
  const { client } = current
  useEffect(() => client.attach(), [client])
  useEffect(() => {
    if (!shared) follow(client, own)
  })
  return client
}

function findClient<Tools extends ToolMap>(
  clients: ReturnType<typeof useClients>,
  options: Partial<ChatClientOptions<Tools>>,
): ChatClient<Tools> {
  // The provider cannot know the tools' types; whoever asks says what they are.
  if (clients) return clients.get(options as never) as unknown as ChatClient<Tools>
  return new ChatClient(options as ChatClientOptions<Tools>)
}

/** Options are read when they are used, so following them is handing over the newest. */
function follow<Tools extends ToolMap>(
  client: ChatClient<Tools>,
  options: Partial<ChatClientOptions<Tools>>,
): void {
  const { threadId: _, initialMessages: __, statePatch: ___, ...rest } = options
  if (Object.keys(rest).length > 0) client.setOptions(rest)
}
