import {
  type ChatClient,
  type ChatSnapshot,
  createSelection,
  type PendingApproval,
  type ToolMap,
  type UIMessage,
} from '@countersign/client'
import { getChat } from './provider.js'
import { keepFor, observe, type Reading, toReading } from './reading.js'

/** Where the functions below look: a chat, or `{ client }`. Without it, what `setChat` provides. */
export interface In<Tools extends ToolMap = ToolMap> {
  readonly client: ChatClient<Tools>
}

/** One message, or `undefined`. Only its own changes run an effect again. */
export function useMessage<Tools extends ToolMap = ToolMap>(
  id: string | (() => string),
  within?: In<Tools>,
): Reading<UIMessage<Tools> | undefined> {
  const getId = typeof id === 'function' ? id : () => id
  return readIn(within, (client) =>
    keepFor(getId, (of) =>
      observe(
        client,
        () => client.getMessage(of),
        (listener) => client.subscribeMessage(of, listener),
      ),
    ),
  )
}

/** The ids of all messages, in order: the same array while none comes or goes. */
export function useMessageIds<Tools extends ToolMap = ToolMap>(
  within?: In<Tools>,
): Reading<readonly string[]> {
  return readIn(within, (client) => observe(client, client.getMessageIds))
}

/** A part of the snapshot: the same value while it is equal (`Object.is` unless told otherwise). `select` may read `$state` too. */
export function useChatSelector<T, Tools extends ToolMap = ToolMap>(
  select: (snapshot: ChatSnapshot<Tools>) => T,
  equal?: (a: T, b: T) => boolean,
  within?: In<Tools>,
): Reading<T> {
  return readIn(within, (client) => {
    const read = createSelection(client.getSnapshot, equal)
    // Another function each time: what it reads beside the snapshot may have changed.
    return observe(client, () => read((snapshot) => select(snapshot)))
  })
}

/** The calls that wait for the person, in order. */
export function usePendingApprovals<Tools extends ToolMap = ToolMap>(
  within?: In<Tools>,
): Reading<readonly PendingApproval<Tools>[]> {
  return readIn(within, (client) => observe(client, () => client.getSnapshot().pendingApprovals))
}

function readIn<Tools extends ToolMap, T>(
  within: In<Tools> | undefined,
  open: (client: ChatClient<Tools>) => () => T,
): Reading<T> {
  // Now and not when it is read: what is provided is only known while a component is set up.
  const place = within ?? getChat<Tools>()
  return toReading(keepFor(() => place.client, open))
}
