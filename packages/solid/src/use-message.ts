import type { ChatClient, ChatSnapshot, PendingApproval, ToolMap, UIMessage } from '@countersign/client'
import { type Accessor, createMemo } from 'solid-js'
import { access, createReading, type MaybeAccessor } from './reading.js'
import { createSnapshot, useChatClient } from './use-chat.js'

/** Where the primitives below look: the provider's chat, or the client given. */
export interface In<Tools extends ToolMap = ToolMap> {
  readonly client: ChatClient<Tools>
}

/** One message. Tells only of its own changes; a part that did not change is the same object, so `<Index>` leaves it alone. */
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

/** The ids of all messages, in order. Tells only when one comes or goes. */
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
 * A part of the snapshot, as a memo: tells only when it is no longer equal (`Object.is` unless told otherwise), and follows the signals
 * that `select` reads.
 */
export function useChatSelector<T, Tools extends ToolMap = ToolMap>(
  select: (snapshot: ChatSnapshot<Tools>) => T,
  equal: (a: T, b: T) => boolean = Object.is,
  within?: MaybeAccessor<In<Tools>>,
): Accessor<T> {
  const snapshot = createSnapshot(useChatClient(within))
  return createMemo(() => select(snapshot()), undefined, { equals: equal })
}

/** The calls that wait for the person, in order. */
export function usePendingApprovals<Tools extends ToolMap = ToolMap>(
  within?: MaybeAccessor<In<Tools>>,
): Accessor<readonly PendingApproval<Tools>[]> {
  return useChatSelector<readonly PendingApproval<Tools>[], Tools>(
    ({ pendingApprovals }) => pendingApprovals,
    undefined,
    within,
  )
}
