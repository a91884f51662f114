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

/** Which chat the functions below use: a chat, or `{ client }`. By default the one that `setChat` provides. */
export interface In<Tools extends ToolMap = ToolMap> {
  readonly client: ChatClient<Tools>
}

/** One message, or `undefined`. Effects run again only when it changes. */
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

/** The ids of all messages, in order: the same array until a message is added or removed. */
export function useMessageIds<Tools extends ToolMap = ToolMap>(
  within?: In<Tools>,
): Reading<readonly string[]> {
  return readIn(within, (client) => observe(client, client.getMessageIds))
}

/** A part of the snapshot: the same value while it is equal (default: `Object.is`). `select` may read `$state`. */
export function useChatSelector<T, Tools extends ToolMap = ToolMap>(
  select: (snapshot: ChatSnapshot<Tools>) => T,
  equal?: (a: T, b: T) => boolean,
  within?: In<Tools>,
): Reading<T> {
  return readIn(within, (client) => {
    const read = createSelection<Tools, T>(client.getSnapshot)
    // A new function each time, because `$state` that `select` reads may have changed.
    return observe(client, () => read((snapshot) => select(snapshot), equal))
  })
}

/** The calls that wait for approval, in order. */
export function usePendingApprovals<Tools extends ToolMap = ToolMap>(
  within?: In<Tools>,
): Reading<readonly PendingApproval<Tools>[]> {
  return readIn(within, (client) => observe(client, () => client.getSnapshot().pendingApprovals))
}

function readIn<Tools extends ToolMap, T>(
  within: In<Tools> | undefined,
  open: (client: ChatClient<Tools>) => () => T,
): Reading<T> {
  // Looked up now, because context is available only during component initialization.
  const place = within ?? getChat<Tools>()
  return toReading(keepFor(() => place.client, open))
}
