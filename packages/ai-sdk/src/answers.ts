import type { AGUIEvent, UIMessage } from '@countersign/core'
import { type AiSdkMessage, type AiSdkPart, isToolPart } from './message.js'
import type { AiSdkReader } from './reader.js'
import { unfinished } from './tool-part.js'

/**
 * The indices in `sent` of messages with approvals that were not sent before the user's next message. A
 * denial is conveyed by the history itself; the SDK accepts an approval only in the last message. Calls that
 * the provider runs are left out: their answers go to the provider.
 */
export function lateAnswers(
  messages: readonly UIMessage[],
  sent: readonly AiSdkMessage[],
): readonly number[] {
  const waiting = new Set(
    messages.flatMap(({ parts }) =>
      parts.flatMap((part) =>
        part.type === 'tool-call' &&
        part.approval?.approved &&
        part.approval.delivery === 'waiting' &&
        !part.providerExecuted
          ? [part.approval.id]
          : [],
      ),
    ),
  )
  const lastSpoken = sent.findLastIndex(({ role }) => role === 'user')
  return sent.flatMap(({ parts }, index) =>
    index < lastSpoken && parts.some((part) => waiting.has(approvalIdOf(part))) ? [index] : [],
  )
}

function approvalIdOf(part: AiSdkPart): string {
  return (isToolPart(part) && part.approval?.id) || ''
}

/**
 * Results for calls that the history describes as ended, because the user has sent another message since: denied ones, and approved ones
 * whose answer may have arrived. The server will send none.
 */
export function passedResults(messages: readonly UIMessage[], runId: string): AGUIEvent[] {
  const lastSpoken = messages.findLastIndex(({ role }) => role === 'user')
  const calls = messages.slice(0, Math.max(lastSpoken, 0)).flatMap(({ parts }) => parts)
  return calls.flatMap((call) => {
    if (call.type !== 'tool-call' || call.state !== 'approval-responded' || call.providerExecuted) return []
    const { approved, reason, delivery } = call.approval ?? {}
    if (approved && delivery !== 'unknown') return []
    const countersign = approved ? { outcome: 'error', code: 'interrupted' } : { outcome: 'denied' }
    return {
      type: 'TOOL_CALL_RESULT' as const,
      messageId: `${runId}/${call.id}`,
      toolCallId: call.id,
      content: JSON.stringify({ reason: approved ? unfinished : reason }),
      metadata: { countersign },
    }
  })
}

/** The conversation after the answers in message `at` were delivered. A call without a result may have run nevertheless. */
export function withOutcomes(
  messages: readonly AiSdkMessage[],
  at: number,
  outcomes: AiSdkReader['outcomes'],
): readonly AiSdkMessage[] {
  const settle = (part: AiSdkPart): AiSdkPart => {
    if (!isToolPart(part)) return part
    const outcome = outcomes.get(part.toolCallId)
    if (outcome) return { ...part, ...outcome }
    if (part.state !== 'approval-responded') return part
    return { ...part, state: 'output-error', errorText: unfinished }
  }
  return messages.map((message, index) =>
    index === at ? { ...message, parts: message.parts.map(settle) } : message,
  )
}
