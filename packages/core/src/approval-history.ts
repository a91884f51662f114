import type { ApprovalOption, ToolCallPart, ToolCallState, ToolResultPart, UIMessage } from './messages.js'
import type { ApprovalScope } from './tools.js'
import { asString, getCountersignMetadata, isRecord, omitUndefined, oneOf } from './value.js'

/** What the server says of a decision beside the result it led to, in `metadata.countersign.decided`. */
export interface ApprovalDecided {
  /** `cancel`: nobody answered, or nobody could any more. `expire`: the time was over. */
  readonly decision: 'approve' | 'deny' | 'cancel' | 'expire'
  /** How far a yes reaches. */
  readonly scope?: ApprovalScope
  /** The person changed the arguments. */
  readonly edited?: true
  /** What the person could choose. */
  readonly options?: readonly ApprovalOption[]
  /** `policy`: the application's. `server`: it closed a question that was not answered, or could not be. */
  readonly by: 'person' | 'policy' | 'server'
  /** Who the person is to the application (`context.subject`), where it has users. */
  readonly subject?: string
  /** ISO 8601. */
  readonly at?: string
}

/** One call that a person was asked about, and what came of it. */
export interface ApprovalHistoryEntry extends Partial<ApprovalDecided> {
  readonly messageId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly approvalId?: string
  readonly options: readonly ApprovalOption[]
  readonly reason?: string
  /** How far the call has come; `complete`, `error`, `denied` or `cancelled` is its outcome. */
  readonly state: ToolCallState
}

/**
 * The calls of a conversation that a person was asked about, in order: what could be chosen, what was decided, by whom and when, and
 * what came of it. Read from the messages alone, so it is as true as they are: a client can write what it likes into a history that
 * it keeps. What the server itself vouches for is the audit trail of its ledger.
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
  { id: toolCallId, name: toolName, state, approval, metadata }: ToolCallPart,
  result: ToolResultPart | undefined,
): readonly ApprovalHistoryEntry[] {
  // the server writes it beside a result of its own, and beside a call that it hands out to be run elsewhere
  const told =
    readDecided(getCountersignMetadata(result?.metadata).decided) ??
    readDecided(getCountersignMetadata(metadata).decided)
  if (approval === undefined && told === undefined) return []
  const { id: approvalId, options = [], approved, scope, reason, input } = approval ?? {}
  const decision = decisionOf(approved, state)
  const yes = approved === true ? { scope: scope ?? 'once', edited: oneOf(input !== undefined, true) } : {}
  return [
    {
      ...omitUndefined({
        messageId,
        toolCallId,
        toolName,
        state,
        options,
        approvalId,
        decision,
        reason,
        ...yes,
      }),
      ...told,
    },
  ]
}

/** What the client's own record says, where the server has told nothing (yet). */
function decisionOf(
  approved: boolean | undefined,
  state: ToolCallState,
): ApprovalDecided['decision'] | undefined {
  if (approved !== undefined) return approved ? 'approve' : 'deny'
  return state === 'cancelled' ? 'cancel' : undefined
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
    options: Array.isArray(options)
      ? options.flatMap((option) => oneOf(option, 'deny', 'once', 'session') ?? [])
      : undefined,
    subject: asString(value.subject),
    at: asString(value.at),
  })
}
