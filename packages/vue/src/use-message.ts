import type { ChatClient, ChatSnapshot, PendingApproval, ToolMap, UIMessage } from '@countersign/client'
import { type ComputedRef, computed, type MaybeRefOrGetter, toValue } from 'vue'
import { useReading } from './reading.js'
import { useFoundClient, useSnapshot } from './use-chat.js'

/** Which chat the composables below use: the given client, or by default the provider's. */
export interface In<Tools extends ToolMap = ToolMap> {
  readonly client: ChatClient<Tools>
}

type Within<Tools extends ToolMap> = MaybeRefOrGetter<In<Tools> | undefined>

/** One message. The ref changes only with that message or with the id. */
export function useMessage<Tools extends ToolMap = ToolMap>(
  id: MaybeRefOrGetter<string>,
  within?: Within<Tools>,
): ComputedRef<UIMessage<Tools> | undefined> {
  const client = useFoundClient<Tools>(within)
  return useReading(() => {
    const { subscribeMessage, getMessage, getServerSnapshot } = client.value
    const wanted = toValue(id)
    return [
      client.value,
      (listener) => subscribeMessage(wanted, listener),
      () => getMessage(wanted),
      () => getServerSnapshot().messages.find((message) => message.id === wanted),
    ]
  })
}

/** The ids of all messages, in order. The ref changes only when a message is added or removed. */
export function useMessageIds<Tools extends ToolMap = ToolMap>(
  within?: Within<Tools>,
): ComputedRef<readonly string[]> {
  const client = useFoundClient<Tools>(within)
  return useReading(() => {
    const { subscribe, getMessageIds, getServerSnapshot } = client.value
    return [
      client.value,
      subscribe,
      getMessageIds,
      () => getServerSnapshot().messages.map((message) => message.id),
    ]
  })
}

/**
 * A selected part of the snapshot. The ref changes only when it is no longer equal (by `Object.is`, unless
 * `equal` is given). Other refs that `select` reads are tracked too.
 */
export function useChatSelector<T, Tools extends ToolMap = ToolMap>(
  select: (snapshot: ChatSnapshot<Tools>) => T,
  equal?: (a: T, b: T) => boolean,
  within?: Within<Tools>,
): ComputedRef<T> {
  const snapshot = useSnapshot(useFoundClient<Tools>(within))
  return computed<T>((before) => {
    const value = select(snapshot.value)
    return before !== undefined && equal?.(before, value) ? before : value
  })
}

/** The calls that wait for approval, in order. */
export function usePendingApprovals<Tools extends ToolMap = ToolMap>(
  within?: Within<Tools>,
): ComputedRef<readonly PendingApproval<Tools>[]> {
  return useChatSelector<readonly PendingApproval<Tools>[], Tools>(
    ({ pendingApprovals }) => pendingApprovals,
    undefined,
    within,
  )
}
