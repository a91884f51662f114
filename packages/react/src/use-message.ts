import {
  type ChatClient,
  type ChatSnapshot,
  createSelection,
  type PendingApproval,
  type ToolMap,
  type UIMessage,
} from '@countersign/client'
import { useCallback, useMemo, useSyncExternalStore } from 'react'
import { useChatClient } from './use-chat.js'

/** Which chat the hooks below use: the given client, or by default the provider's. */
export interface In<Tools extends ToolMap = ToolMap> {
  readonly client: ChatClient<Tools>
}

/** One message. The component re-renders only when that message changes. */
export function useMessage<Tools extends ToolMap = ToolMap>(
  id: string,
  within?: In<Tools>,
): UIMessage<Tools> | undefined {
  const client = useChatClient(within)
  const subscribe = useCallback((listener: () => void) => client.subscribeMessage(id, listener), [client, id])
  const get = useCallback(() => client.getMessage(id), [client, id])
  const getServer = useCallback(
    () => client.getServerSnapshot().messages.find((message) => message.id === id),
    [client, id],
  )
  return useSyncExternalStore(subscribe, get, getServer)
}

/** The ids of all messages, in order. Re-renders only when a message is added or removed. */
export function useMessageIds<Tools extends ToolMap = ToolMap>(within?: In<Tools>): readonly string[] {
  const client = useChatClient(within)
  const readServer = useMemo(
    () => createSelection<Tools, readonly string[]>(client.getServerSnapshot),
    [client],
  )
  return useSyncExternalStore(client.subscribe, client.getMessageIds, () => readServer(messageIds))
}

/** A selected part of the snapshot. Re-renders only when it is no longer equal (by `Object.is`, unless `equal` is given). */
export function useChatSelector<T, Tools extends ToolMap = ToolMap>(
  select: (snapshot: ChatSnapshot<Tools>) => T,
  equal?: (a: T, b: T) => boolean,
  within?: In<Tools>,
): T {
  const client = useChatClient(within)
  const read = useMemo(() => createSelection<Tools, T>(client.getSnapshot), [client])
  const readServer = useMemo(() => createSelection<Tools, T>(client.getServerSnapshot), [client])
  return useSyncExternalStore(
    client.subscribe,
    () => read(select, equal),
    () => readServer(select, equal),
  )
}

/** The calls that wait for approval, in order. */
export function usePendingApprovals<Tools extends ToolMap = ToolMap>(
  within?: In<Tools>,
): readonly PendingApproval<Tools>[] {
  return useChatSelector<readonly PendingApproval<Tools>[], Tools>(pendingApprovals, undefined, within)
}

function pendingApprovals<Tools extends ToolMap>(
  snapshot: ChatSnapshot<Tools>,
): readonly PendingApproval<Tools>[] {
  return snapshot.pendingApprovals
}

function messageIds<Tools extends ToolMap>({ messages }: ChatSnapshot<Tools>): readonly string[] {
  return messages.map(({ id }) => id)
}
