import {
  type ChatClient,
  type ChatClientOptions,
  type ChatClients,
  createChatClients,
} from '@countersign/client'
import { createContext, createElement, type ReactNode, useContext, useState } from 'react'

const ClientsContext = createContext<ChatClients | undefined>(undefined)

/** Props of {@link ChatProvider}: a client you made, or the options for one. */
export type ChatProviderProps = { readonly children?: ReactNode } & (
  | { readonly client: ChatClient; readonly options?: undefined }
  | { readonly options: ChatClientOptions; readonly client?: undefined }
)

/** Gives its children one chat, so that `useChat()` needs no arguments. Another `client` is another chat. */
export function ChatProvider({ client, options, children }: ChatProviderProps): ReactNode {
  const [made, remake] = useState(() => ({ client, clients: createChatClients(client ?? options) }))
  if (client && client !== made.client) remake({ client, clients: createChatClients(client) })
  return createElement(ClientsContext, { value: made.clients }, children)
}

export function useClients(): ChatClients | undefined {
  return useContext(ClientsContext)
}
