import type { ApprovalOption, ToolCallPart, ToolCallState, ToolResultPart, UIMessage } from './messages.js'
import type { ApprovalScope } from './tools.js'
import { asString, getCountersignMetadata, isRecord, omitUndefined, oneOf } from './value.js'

/** The server's record of a decision, stored with the result in `metadata.countersign.decided`. */
export interface ApprovalDecided {
  /** `cancel`: nobody answered, or nobody could any longer. `expire`: time ran out. */
  readonly decision: 'approve' | 'deny' | 'cancel' | 'expire'
  /** How far an approval reaches. */
  readonly scope?: ApprovalScope
  /** The user changed the arguments. */
  readonly edited?: true
  /** The arguments after the user's changes, with which the call was approved. Only with `edited`, and absent if the server kept no copy. */
  readonly input?: unknown
  /** The choices the user had. */
  readonly options?: readonly ApprovalOption[]
  /** `policy`: the application's policy decided. `server`: the server closed a request that was not, or could not be, answered. */
  readonly by: 'person' | 'policy' | 'server'
  /** The user's id in the application (`context.subject`), if it has users. */
  readonly subject?: string
  /** ISO 8601. */
  readonly at?: string
  /** The mandate that let the call through, or the standing denial that refused it, by the id under which it is listed. */
  readonly mandate?: { readonly id: string; readonly label: string }
}

/** One call that needed approval, and its outcome. */
export interface ApprovalHistoryEntry extends Partial<ApprovalDecided> {
  readonly messageId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly approvalId?: string
  readonly options: readonly ApprovalOption[]
  /** Why the call was denied, or what the user gave as a reason. */
  readonly reason?: string
  /** The state the call has reached. `complete`, `error`, `denied` and `cancelled` are outcomes. */
  readonly state: ToolCallState
}

/**
 * Lists the calls of a conversation that needed approval, in order: the choices, the decision, who made it and
 * when, and the outcome. It reads only the messages, so it is as trustworthy as they are: a client can forge a
 * history that it stores. For a record that the server vouches for, use the audit trail of its ledger.
 *
 * @example approvalHistory(fromAGUIMessages(storedMessages))
 */
export function approvalHistory(messages: readonly UIMessage[]): readonly ApprovalHistoryEntry[] {
  return messages.flatMap((message) => {
    const results = new Map<string, ToolResultPart>()
    for (const part of message.parts) if (part.type === 'tool-result') results.set(part.toolCallId, part)
    return message.parts.flatMap((part) =>
      part.type === 'tool-call' ? readEntry(message.id, part, results.get(part.id)) : [],
    )
  })
}

function readEntry(
  messageId: string,
  { id: toolCallId, name: toolName, state, approval, error, metadata }: ToolCallPart,
  result: ToolResultPart | undefined,
): readonly ApprovalHistoryEntry[] {
  // The server writes it next to its own results, and next to a call that it hands back to be run elsewhere.
  const told =
    readDecided(getCountersignMetadata(result?.metadata).decided) ??
    readDecided(getCountersignMetadata(metadata).decided)
  if (approval === undefined && told === undefined) return []
  const { id: approvalId, options = [], approved, scope, reason, input } = approval ?? {}
  const decision = decisionOf(approved, state)
  const edited = oneOf(input !== undefined, true)
  const yes = approved === true ? { scope: scope ?? 'once', edited, input } : {}
  return [
    {
      ...omitUndefined({
        messageId,
        toolCallId,
        toolName,
        state,
        options,
        approvalId,
        // After a reload, only the result has the reason of a denial.
        reason:
          (!told || told.decision === decision ? reason : undefined) ??
          (state === 'denied' ? error?.message : undefined),
        // Not both: another page may have answered before this one, with other arguments.
        ...(told ?? { decision, ...yes }),
      }),
    },
  ]
}

/** The client's own record, used until the server has sent its own. */
function decisionOf(
  approved: boolean | undefined,
  state: ToolCallState,
): ApprovalDecided['decision'] | undefined {
  if (approved !== undefined) return approved ? 'approve' : 'deny'
  return state === 'cancelled' ? 'cancel' : undefined
}

function readMandate(value: unknown): ApprovalDecided['mandate'] {
  const { id, label } = isRecord(value) ? value : {}
  return typeof id === 'string' && typeof label === 'string' ? { id, label } : undefined
}

function readDecided(value: unknown): ApprovalDecided | undefined {
  if (!isRecord(value)) return undefined
  const decision = oneOf(value.decision, 'approve', 'deny', 'cancel', 'expire')
  const by = oneOf(value.by, 'person', 'policy', 'server')
  if (decision === undefined || by === undefined) return undefined
  const { options } = value
  return omitUndefined({
    decision,
    by,
    scope: oneOf(value.scope, 'once', 'session'),
    edited: oneOf(value.edited, true),
    input: value.edited === true ? value.input : undefined,
    options: Array.isArray(options)
      ? options.flatMap((option) => oneOf(option, 'deny', 'once', 'session') ?? [])
      : undefined,
    subject: asString(value.subject),
    at: asString(value.at),
    mandate: readMandate(value.mandate),
  })
}
