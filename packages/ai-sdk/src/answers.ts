import type { UIMessage } from '@countersign/core'
import { type AiSdkMessage, type AiSdkPart, isToolPart } from './message.js'
import type { AiSdkReader } from './reader.js'

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
    return { ...part, state: 'output-error', errorText: 'It was interrupted and may or may not have run.' }
  }
  return messages.map((message, index) =>
    index === at ? { ...message, parts: message.parts.map(settle) } : message,
  )
}
