import {
  type ChatClient,
  type ChatClientOptions,
  type ChatClients,
  createChatClients,
  type ToolMap,
} from '@countersign/client'
import { createContext, createElement, type ReactNode, useContext, useInsertionEffect, useState } from 'react'

/** A context cannot know the tools' types: whoever reads it says what they are. */
const ClientsContext = createContext<unknown>(undefined)

/** Props of {@link ChatProvider}: a client you made, or the options for one. */
export type ChatProviderProps<Tools extends ToolMap = ToolMap> = { readonly children?: ReactNode } & (
  | { readonly client: ChatClient<Tools>; readonly options?: undefined }
  | { readonly options: ChatClientOptions<Tools>; readonly client?: undefined }
)

/**
 * Gives its children one chat, so that `useChat()` needs no arguments. Another `client` or another `options.threadId` is another chat;
 * all other options are followed.
 */
export function ChatProvider<Tools extends ToolMap = ToolMap>(props: ChatProviderProps<Tools>): ReactNode {
  const { client, options, children } = props
  const source = client ?? options ?? {}
  const threadId = options?.threadId
  const [found, refind] = useState(() => ({ client, threadId, clients: createChatClients<Tools>(source) }))
  const stale = found.client !== client || found.threadId !== threadId
  const current = stale ? { client, threadId, clients: found.clients.switchTo(source) } : found
  if (stale) refind(current)
  useInsertionEffect(() => current.clients.setOptions(options ?? {}))
  return createElement(ClientsContext.Provider, { value: current.clients }, children)
}

export function useClients<Tools extends ToolMap>(): ChatClients<Tools> | undefined {
  return useContext(ClientsContext) as ChatClients<Tools> | undefined
}
