import { CountersignError, getCountersignMetadata, type Message, type ToolCall } from '@countersign/core'
import { isReserved } from '../tools/toolkit.js'
import { isProviderExecuted } from './history.js'
import { turnwise } from './turns.js'

/**
 * Checks the history for the model: each call has exactly one result, in the messages right after it, and no approval data is
 * left. A provider would reject anything else, or worse, misread it.
 *
 * @throws CountersignError `unreconciled-history`, naming the call.
 */
export function assertReconciled(prepared: readonly Message[]): void {
  check(prepared, undefined)
}

/** Each part is checked by itself: a result does not follow its call where the user speaks between them. */
const check = turnwise<never>((prepared, from, end) => {
  let expected = new Set<string>()
  let optional = new Set<string>()
  for (const message of prepared.slice(from, end)) {
    if (message.role === 'tool') {
      const { toolCallId } = message
      if (expected.delete(toolCallId) || optional.delete(toolCallId)) continue
      fail(`the result for ${toolCallId} does not follow its call`, toolCallId)
    }
    checkAnswered(expected)
    if (message.role !== 'assistant') continue
    const calls = message.toolCalls ?? []
    if (calls.length === 0 && !message.content) fail(`the assistant message ${message.id} is empty`)
    if (calls.length === 0 && expected.size + optional.size === 0) continue
    calls.forEach(checkCall)
    expected = idsOf(calls.filter((call) => !isProviderExecuted(call)))
    optional = idsOf(calls.filter(isProviderExecuted))
    if (expected.size + optional.size < calls.length)
      fail(`the message ${message.id} holds two calls with one id`)
  }
  checkAnswered(expected)
  return { items: [], isClosed: optional.size === 0 }
})

function idsOf(calls: readonly ToolCall[]): Set<string> {
  return new Set(calls.map((call) => call.id))
}

function checkAnswered(expected: ReadonlySet<string>): void {
  for (const id of expected) fail(`the call ${id} has no result`, id)
}

function checkCall(call: ToolCall): void {
  const own = getCountersignMetadata(call.metadata)
  if (isReserved(call.function.name)) fail(`${call.function.name} is no tool of a model`, call.id)
  if (own.token !== undefined || own.approval !== undefined)
    fail(`the call ${call.id} still carries its approval`, call.id)
}

function fail(what: string, toolCallId?: string): never {
  throw new CountersignError(
    'unreconciled-history',
    `The model was not called because ${what}. Close open calls with cancelAllPending() and prepare with prepareMessagesForModel().`,
    toolCallId === undefined ? {} : { toolCallId },
  )
}
