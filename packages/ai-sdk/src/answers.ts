import type { UIMessage } from '@countersign/core'
import { type AiSdkMessage, type AiSdkPart, isToolPart } from './message.js'
import type { AiSdkReader } from './reader.js'

/**
 * Where in `sent` there are answers that were not sent yet although the person has spoken since. A no is told by the history itself; a
 * yes is only heard where it is the last thing that was said. A call that the provider runs is the provider's to hear of.
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

/** The conversation after the answers of the message `at` were delivered. What got no result may have run all the same. */
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
