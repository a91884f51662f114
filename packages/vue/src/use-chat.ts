import {
  type ChatActions,
  type ChatClient,
  type ChatClientOptions,
  type ChatClients,
  type ChatSnapshot,
  createActions,
  createChatClients,
  type ToolMap,
  type Turn,
  turnsOf,
} from '@countersign/client'
import { type ComputedRef, computed, type MaybeRefOrGetter } from 'vue'
import { type Given, given, mapped } from './given.js'
import { useClients } from './provider.js'
import { untracked, useReading, whileShown } from './reading.js'

/** What `useChat` gives: a ref for each of the snapshot's fields, of its turns and of the client, and the actions (always the same functions). */
export type UseChat<Tools extends ToolMap = ToolMap> = Refs<ChatSnapshot<Tools>> &
  ChatActions<Tools> & {
    /** The conversation as it is shown: one turn per answer, the same object while nothing in it changes. */
    readonly turns: ComputedRef<readonly Turn<Tools>[]>
    readonly client: ComputedRef<ChatClient<Tools>>
  }

type Refs<Fields> = { readonly [Name in keyof Fields]: ComputedRef<Fields[Name]> }

/** `{ client }` shares a client you made; options make one, or change those of the provider's client of that `threadId`. */
export type UseChatOptions<Tools extends ToolMap = ToolMap> =
  | { readonly client: ChatClient<Tools> }
  | (Partial<ChatClientOptions<Tools>> & { readonly client?: undefined })

/**
 * The chat of this component or effect scope. `useChat()` reads the provider; `useChat({ client })` shares a client; `useChat(options)`
 * makes one, or, under a provider, takes the provider's client of that `threadId`, and follows the options. Another `threadId` is
 * another client, never a reset, and going back finds the first. The end of the scope leaves the run alone, and what this returned still
 * reaches it; the option `onDetach: 'stop'` ends it.
 */
export function useChat<Tools extends ToolMap = ToolMap>(
  options?: MaybeRefOrGetter<UseChatOptions<Tools> | undefined>,
): UseChat<Tools> {
  const client = useFoundClient<Tools>(options)
  const snapshot = useSnapshot(client)
  const fields = mapped(snapshot.value, (name) => computed(() => snapshot.value[name]))
  // Functions that outlive a client: they act on the one of the moment, also where a setup has taken them out of here.
  const actions = createActions<Tools>((use) => untracked(() => use(client.value)))
  const turns = computed(() => turnsOf(snapshot.value.messages))
  return { ...(fields as Refs<ChatSnapshot<Tools>>), turns, ...actions, client }
}

/** The client itself, for those who subscribe on their own. */
export function useChatClient<Tools extends ToolMap = ToolMap>(
  options?: MaybeRefOrGetter<UseChatOptions<Tools> | undefined>,
): ComputedRef<ChatClient<Tools>> {
  const client = useFoundClient<Tools>(options)
  whileShown(client, (shown) => shown.attach())
  return client
}

/** The client, not attached: `useReading` attaches it for those who read something of it. */
export function useFoundClient<Tools extends ToolMap = ToolMap>(
  options?: MaybeRefOrGetter<UseChatOptions<Tools> | undefined>,
): ComputedRef<ChatClient<Tools>> {
  const provided = useClients<Tools>()
  let found: Found<Tools> | undefined
  let mine: ChatClients<Tools> | undefined
  // Found when somebody asks and at the latest with the next flush, so that options which change one after the other, as props do,
  // are taken together. A client holds nothing until it is used.
  return computed(() => {
    const { client: shared, ...own } = given<Tools>(options)
    const from = shared ? undefined : provided?.value
    const isSame = found?.from === from && found?.shared === shared && found?.own.threadId === own.threadId
    const same = isSame ? found : undefined
    const other = same?.clients ?? (shared ? createChatClients<Tools>(shared) : from)
    const clients = other ?? mine?.switchTo(own) ?? createChatClients<Tools>(own)
    if (!other) mine = clients
    const client = same?.client ?? clients.get(own)
    if (from) from.follow(client, own, found?.client === client ? found.own : {})
    else clients.setOptions(own)
    found = { shared, from, own, clients, client }
    return client
  })
}

interface Found<Tools extends ToolMap> {
  readonly shared: ChatClient<Tools> | undefined
  readonly from: ChatClients<Tools> | undefined
  readonly own: Given<Tools>
  readonly clients: ChatClients<Tools>
  readonly client: ChatClient<Tools>
}

/** The whole snapshot, as one value. */
export function useSnapshot<Tools extends ToolMap>(
  client: ComputedRef<ChatClient<Tools>>,
): ComputedRef<ChatSnapshot<Tools>> {
  return useReading(() => {
    const { subscribe, getSnapshot, getServerSnapshot } = client.value
    return [client.value, subscribe, getSnapshot, getServerSnapshot]
  })
}
