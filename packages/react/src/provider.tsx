import {
  type ChatClient,
  type ChatClientOptions,
  type ChatClients,
  createChatClients,
  type ToolMap,
} from '@countersign/client'
import { createContext, createElement, type ReactNode, useContext, useInsertionEffect, useState } from 'react'

/** A context cannot know the tools' types; consumers specify them. */
const ClientsContext = createContext<unknown>(undefined)

/** Props of {@link ChatProvider}: an existing client, or the options for one. */
export type ChatProviderProps<Tools extends ToolMap = ToolMap> = { readonly children?: ReactNode } & (
  | { readonly client: ChatClient<Tools>; readonly options?: undefined }
  | { readonly options: ChatClientOptions<Tools>; readonly client?: undefined }
)

/**
 * Provides one chat to its children, so that `useChat()` needs no arguments. Another `client` or
 * `options.threadId` is another chat; changes of all other options are applied.
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
