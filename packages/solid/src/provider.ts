import {
  type ChatClient,
  type ChatClientOptions,
  type ChatClients,
  createChatClients,
  type ToolMap,
} from '@countersign/client'
import {
  type Accessor,
  createComponent,
  createContext,
  createMemo,
  createRenderEffect,
  type JSX,
  untrack,
  useContext,
} from 'solid-js'

/** A context cannot know the tools' types; consumers specify them. */
const ClientsContext = createContext<unknown>()

/** Props of {@link ChatProvider}: an existing client, or the options for one. */
export type ChatProviderProps<Tools extends ToolMap = ToolMap> = { readonly children?: JSX.Element } & (
  | { readonly client: ChatClient<Tools>; readonly options?: undefined }
  | { readonly options: ChatClientOptions<Tools>; readonly client?: undefined }
)

/**
 * Provides one chat to its children, so that `useChat()` needs no arguments. Another `client` or
 * `options.threadId` is another chat; changes of all other options are applied.
 */
export function ChatProvider<Tools extends ToolMap = ToolMap>(props: ChatProviderProps<Tools>): JSX.Element {
  const client = createMemo(() => props.client)
  const threadId = createMemo(() => props.options?.threadId)
  const clients = createMemo<ChatClients<Tools>>((found) => {
    threadId()
    const source = client() ?? untrack(() => props.options) ?? {}
    return untrack(() => (found ? found.switchTo(source) : createChatClients(source)))
  })
  createRenderEffect(() => clients().setOptions(props.options ?? {}))
  return createComponent(ClientsContext.Provider, {
    value: clients,
    get children() {
      return props.children
    },
  })
}

export function useClients<Tools extends ToolMap>(): Accessor<ChatClients<Tools>> | undefined {
  return useContext(ClientsContext) as Accessor<ChatClients<Tools>> | undefined
}
