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

/** Where the hooks below look: the provider's chat, or the client given. */
export interface In<Tools extends ToolMap = ToolMap> {
  readonly client: ChatClient<Tools>
}

/** One message. Only its own changes render the component again. */
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

/** The ids of all messages, in order. Renders again only when one comes or goes. */
export function useMessageIds<Tools extends ToolMap = ToolMap>(within?: In<Tools>): readonly string[] {
  const client = useChatClient(within)
  const readServer = useMemo(
    () => createSelection<Tools, readonly string[]>(client.getServerSnapshot),
    [client],
  )
  return useSyncExternalStore(client.subscribe, client.getMessageIds, () => readServer(messageIds))
}

/** A part of the snapshot. Renders again only when it is no longer equal (`Object.is` unless told otherwise). */
export function useChatSelector<T, Tools extends ToolMap = ToolMap>(
  select: (snapshot: ChatSnapshot<Tools>) => T,
  equal?: (a: T, b: T) => boolean,
  within?: In<Tools>,
): T {
  const client = useChatClient(within)
  const read = useMemo(() => createSelection(client.getSnapshot, equal), [client, equal])
  const readServer = useMemo(() => createSelection(client.getServerSnapshot, equal), [client, equal])
  return useSyncExternalStore(
    client.subscribe,
    () => read(select),
    () => readServer(select),
  )
}

/** The calls that wait for the person, in order. */
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
