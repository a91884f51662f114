import type { Message, ToolCall } from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { isProviderExecuted } from '../history/history.js'
import type { PlannableCall } from './plan.js'

/** A tool call as planners and their predicates see it. */
export interface PlannedCall extends PlannableCall {
  readonly toolName: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
  /** The arguments, read strictly; `undefined` where they cannot be. Such a call never runs, whatever is decided. */
  readonly input: unknown
}

/** The calls of a model's turn that are ours to run. */
export function plannedCalls(turn: Message | undefined): readonly PlannedCall[] {
  if (turn?.role !== 'assistant') return []
  return (turn.toolCalls ?? []).filter((call) => !isProviderExecuted(call)).map(plannedCall)
}

function plannedCall({ id, function: { name, arguments: text } }: ToolCall): PlannedCall {
  const read = readArguments(text)
  return { toolCallId: id, toolName: name, arguments: text, input: read.ok ? read.value : undefined }
}
