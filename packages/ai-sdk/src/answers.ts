import {
  type AGUIEvent,
  isTerminal,
  type ResumeEntry,
  type ToolCallPart,
  type UIMessage,
} from '@countersign/core'
import { type AiSdkMessage, type AiSdkPart, isToolPart } from './message.js'
import type { AiSdkReader } from './reader.js'
import { resultMetadata, unfinished, writeToolPart } from './tool-part.js'

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
 * The conversation without approvals that an earlier request carried. Such a server keeps no record of answers: it would run those calls
 * again. `resume`: the answers of this request, which has an earlier one only if the user asked for that with `retry()`.
 */
export function withoutRepeats(
  messages: readonly UIMessage[],
  resume: readonly ResumeEntry[] = [],
): readonly UIMessage[] {
  const carried = new Set(resume.map(({ interruptId }) => interruptId))
  const isRepeat = ({ state, approval, providerExecuted }: ToolCallPart) =>
    state === 'approval-responded' && approval?.approved && !providerExecuted && !carried.has(approval.id)
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      part.type === 'tool-call' && isRepeat(part) ? { ...part, state: 'executing' } : part,
    ),
  }))
}

/**
 * Results for calls that the history describes as ended although they have none: denied ones, and those that may have run. The server
 * will send none.
 */
export function passedResults(messages: readonly UIMessage[], runId: string): AGUIEvent[] {
  const lastSpoken = messages.findLastIndex(({ role }) => role === 'user')
  return messages.flatMap(({ parts }, index) =>
    parts.flatMap((call) => {
      if (call.type !== 'tool-call' || isTerminal(call.state)) return []
      const { state, errorText, approval } = writeToolPart(call, undefined, index < lastSpoken) ?? {}
      const failed = state === 'output-error'
      if (!failed && state !== 'output-denied') return []
      return {
        type: 'TOOL_CALL_RESULT' as const,
        messageId: `${runId}/${call.id}`,
        toolCallId: call.id,
        content: JSON.stringify({ reason: errorText ?? approval?.reason }),
        ...resultMetadata(failed ? 'error' : 'denied', {}, failed ? 'interrupted' : undefined),
      }
    }),
  )
}

/** Whether the server can't continue yet: an SDK route refuses a history that ends with an unanswered approval request. */
export function needsAnswer(message: AiSdkMessage | undefined): boolean | undefined {
  return message?.parts.some((part) => 'state' in part && part.state === 'approval-requested')
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
