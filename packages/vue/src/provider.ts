import {
  type ChatClient,
  type ChatClientOptions,
  type ChatClients,
  createChatClients,
  type ToolMap,
} from '@countersign/client'
import {
  type ComputedRef,
  computed,
  defineComponent,
  hasInjectionContext,
  inject,
  type MaybeRefOrGetter,
  provide,
  type SetupContext,
  watch,
} from 'vue'
import { given } from './given.js'

const clientsKey = Symbol('countersign')

/** What a provider takes: an existing client, or the options for one. */
export type ChatSource<Tools extends ToolMap = ToolMap> =
  | { readonly client: ChatClient<Tools> }
  | (ChatClientOptions<Tools> & { readonly client?: undefined })

/** Props of {@link ChatProvider}: an existing client, or the options for one. */
export type ChatProviderProps<Tools extends ToolMap = ToolMap> =
  | { readonly client: ChatClient<Tools>; readonly options?: undefined }
  | { readonly options: ChatClientOptions<Tools>; readonly client?: undefined }

/**
 * Provides one chat to the components below, so that `useChat()` needs no arguments there, and returns its client for
 * the component itself. Another `client` or `threadId` is another chat; changes of all other options are applied.
 */
export function provideChat<Tools extends ToolMap = ToolMap>(
  source: MaybeRefOrGetter<ChatSource<Tools>>,
): ComputedRef<ChatClient<Tools>> {
  let last: { shared: unknown; threadId: unknown; clients: ChatClients<Tools> } | undefined
  const clients = computed(() => {
    const { client: shared, ...options } = given<Tools>(source)
    const { threadId } = options
    if (!last || last.shared !== shared || last.threadId !== threadId) {
      const chat = shared ?? options
      last = { shared, threadId, clients: last?.clients.switchTo(chat) ?? createChatClients<Tools>(chat) }
    }
    last.clients.setOptions(options)
    return last.clients
  })
  // Applies changed options even if no component below reads the client.
  watch(clients, () => {})
  provide(clientsKey, clients)
  return computed(() => clients.value.main)
}

/** `provideChat` as a component around its default slot. */
export const ChatProvider = /* @__PURE__ */ defineComponent(
  <Tools extends ToolMap = ToolMap>(
    props: ChatProviderProps<Tools>,
    { slots }: Pick<SetupContext, 'slots'>,
  ) => {
    provideChat<Tools>(() => (props.client ? { client: props.client } : props.options))
    return () => slots['default']?.()
  },
  { name: 'ChatProvider', props: ['client', 'options'] },
)

/** A provider cannot know the tools' types; consumers specify them. */
export function useClients<Tools extends ToolMap>(): ComputedRef<ChatClients<Tools>> | undefined {
  return hasInjectionContext()
    ? inject<ComputedRef<ChatClients<Tools>> | undefined>(clientsKey, undefined)
    : undefined
}
