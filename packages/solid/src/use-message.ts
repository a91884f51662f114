import type { ChatClient, ChatSnapshot, PendingApproval, ToolMap, UIMessage } from '@countersign/client'
import { type Accessor, createMemo } from 'solid-js'
import { access, createReading, type MaybeAccessor } from './reading.js'
import { createSnapshot, useChatClient } from './use-chat.js'

/** Which chat the primitives below use: the given client, or by default the provider's. */
export interface In<Tools extends ToolMap = ToolMap> {
  readonly client: ChatClient<Tools>
}

/** One message. Updates only when it changes; unchanged parts are the same objects, so `<Index>` leaves them alone. */
export function useMessage<Tools extends ToolMap = ToolMap>(
  id: MaybeAccessor<string>,
  within?: MaybeAccessor<In<Tools>>,
): Accessor<UIMessage<Tools> | undefined> {
  const client = useChatClient(within)
  return createReading(
    (changed) => client().subscribeMessage(access(id), changed),
    (inTheBeginning) =>
      inTheBeginning
        ? client()
            .getServerSnapshot()
            .messages.find((message) => message.id === access(id))
        : client().getMessage(access(id)),
  )
}

/** The ids of all messages, in order. Updates only when a message is added or removed. */
export function useMessageIds<Tools extends ToolMap = ToolMap>(
  within?: MaybeAccessor<In<Tools>>,
): Accessor<readonly string[]> {
  const client = useChatClient(within)
  return createReading(
    (changed) => client().subscribe(changed),
    (inTheBeginning) =>
      inTheBeginning
        ? client()
            .getServerSnapshot()
            .messages.map(({ id }) => id)
        : client().getMessageIds(),
  )
}

/**
 * A selected part of the snapshot, as a memo. Updates only when it is no longer equal (by `Object.is`, unless
 * `equal` is given), and tracks the signals that `select` reads.
 */
export function useChatSelector<T, Tools extends ToolMap = ToolMap>(
  select: (snapshot: ChatSnapshot<Tools>) => T,
  equal: (a: T, b: T) => boolean = Object.is,
  within?: MaybeAccessor<In<Tools>>,
): Accessor<T> {
  const snapshot = createSnapshot(useChatClient(within))
  return createMemo(() => select(snapshot()), undefined, { equals: equal })
}

/** The calls that wait for approval, in order. */
export function usePendingApprovals<Tools extends ToolMap = ToolMap>(
  within?: MaybeAccessor<In<Tools>>,
): Accessor<readonly PendingApproval<Tools>[]> {
  return useChatSelector<readonly PendingApproval<Tools>[], Tools>(
    ({ pendingApprovals }) => pendingApprovals,
    undefined,
    within,
  )
}
