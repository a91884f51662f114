import {
  isRecord,
  type Message,
  type MessagePart,
  type ReasoningPart,
  type ResumeEntry,
  type ToolCallPart,
  type ToolResultPart,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import { fromAiSdkMessages } from '../from-messages.js'
import { type AiSdkMessage, isToolPart } from '../message.js'

/**
 * Converts an AI SDK client's history to AG-UI messages. Data that our stream attached to a part returns as provider metadata; it is
 * trusted as little as anything else from a client.
 */
export function historyOf(messages: readonly AiSdkMessage[]): Message[] {
  return toAGUIMessages(messages.flatMap(restoreSteps))
}

/** The message's own metadata goes to its first step: on each of them, a small request would become a large one. */
function restoreSteps({ metadata, ...message }: AiSdkMessage): UIMessage[] {
  const [first, ...others] = fromAiSdkMessages([message]).map(restore)
  if (first === undefined) return []
  const all = { ...without(isRecord(metadata) ? metadata : {}, 'aiSdk', 'countersign'), ...first.metadata }
  return [{ ...first, ...(Object.keys(all).length > 0 && { metadata: all }) }, ...others]
}

/**
 * The answers of a request: each part in the state `approval-responded`. The token is the `signature` of our request. If a client lost
 * it, the token in the ledger's record replaces it, as for any client that returns no token. The first answer to a request counts.
 */
export function answersOf(messages: readonly AiSdkMessage[]): ResumeEntry[] {
  const entries = new Map<string, ResumeEntry>()
  for (const { parts } of messages) {
    for (const part of parts) {
      if (!isToolPart(part) || part.state !== 'approval-responded' || !part.approval) continue
      const { id: interruptId, approved, reason, signature: token, descriptor, isAutomatic } = part.approval
      // Whoever returns the descriptor knows previews: `null` says that it had none.
      const preview = isRecord(descriptor) ? (descriptor.preview ?? null) : undefined
      if (isAutomatic || typeof interruptId !== 'string' || entries.has(interruptId)) continue
      entries.set(interruptId, {
        interruptId,
        status: 'resolved',
        payload: { approved, ...(reason !== undefined && { reason }) },
        ...((token ?? preview) !== undefined && { metadata: { countersign: { token, preview } } }),
      })
    }
  }
  return [...entries.values()]
}

/** The mapping's own data is not passed to the agent. */
function restore(message: UIMessage): UIMessage {
  const { metadata: _, ...rest } = message
  return { ...rest, parts: message.parts.map(restorePart), ...metadataOf(ownOfTexts(message)) }
}

function restorePart(part: MessagePart): MessagePart {
  switch (part.type) {
    case 'reasoning':
      return restoreThought(part)
    case 'tool-call':
      return restoreCall(part)
    case 'tool-result':
      return restoreResult(part)
    default:
      return part
  }
}

function restoreThought({ metadata, ...part }: ReasoningPart): ReasoningPart {
  const { id, providerMetadata } = aiSdkOf(metadata)
  const { encryptedValue, ...own } = ownOf(providerMetadata)
  return {
    ...part,
    ...(typeof id === 'string' && { id }),
    ...(typeof encryptedValue === 'string' && { encryptedValue }),
    ...metadataOf(own),
  }
}

/** Only the approval request. `approval-responded` parts are read separately, as answers; no other decision in a history counts. */
function restoreCall({ metadata, approval, ...part }: ToolCallPart): ToolCallPart {
  const { callProviderMetadata } = aiSdkOf(metadata)
  const own = metadataOf(without(ownOf(callProviderMetadata), 'token', 'approval', 'state', 'error'))
  if (!approval) return { ...part, ...own }
  const { id, needsApproval, options, message } = approval
  const { token, display, preview } = saidOf(approval.token)
  return {
    ...part,
    ...(part.state === 'approval-responded' && { state: 'approval-requested' }),
    approval: {
      id,
      needsApproval,
      options,
      ...(message !== undefined && { message }),
      ...(display !== undefined && { display }),
      ...(preview !== undefined && { preview }),
      ...(token !== undefined && { token }),
    },
    ...own,
  }
}

function restoreResult({ metadata, ...part }: ToolResultPart): ToolResultPart {
  const told = isRecord(metadata) && isRecord(metadata.countersign) ? metadata.countersign : {}
  return { ...part, ...metadataOf({ ...told, ...ownOf(aiSdkOf(metadata).resultProviderMetadata) }) }
}

/** The metadata of the last text counts for the whole message: each repeats what the earlier ones had. */
function ownOfTexts({ metadata }: UIMessage): Readonly<Record<string, unknown>> {
  const { layout } = aiSdkOf(metadata)
  const last = (Array.isArray(layout) ? layout : []).findLast(
    (item) => isRecord(item) && 'providerMetadata' in item,
  )
  const { order: _, ...own } = ownOf(isRecord(last) ? last.providerMetadata : undefined)
  return own
}

/** The data of our request, which such a client keeps as one string: the token, and the arguments and the preview as shown. */
function saidOf(kept: string | undefined): {
  readonly token?: string
  readonly display?: unknown
  readonly preview?: unknown
} {
  const asked: unknown = kept === undefined ? undefined : JSON.parse(kept)
  if (!isRecord(asked)) return {}
  const { signature, descriptor } = asked
  return {
    ...(typeof signature === 'string' && { token: signature }),
    ...(isRecord(descriptor) && { display: descriptor.display, preview: descriptor.preview }),
  }
}

function without(
  members: Readonly<Record<string, unknown>>,
  ...names: readonly string[]
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)))
}

function aiSdkOf(metadata: unknown): Readonly<Record<string, unknown>> {
  const own = isRecord(metadata) ? metadata.aiSdk : undefined
  return isRecord(own) ? own : {}
}

/** Our part of a provider's metadata. */
function ownOf(provider: unknown): Readonly<Record<string, unknown>> {
  const own = isRecord(provider) ? provider.countersign : undefined
  return isRecord(own) ? own : {}
}

function metadataOf(own: Readonly<Record<string, unknown>>): {
  metadata?: { countersign: Readonly<Record<string, unknown>> }
} {
  return Object.keys(own).length > 0 ? { metadata: { countersign: own } } : {}
}
