import { CountersignError } from '@countersign/core'
import type { ModelMessage, ModelRequest, ModelToolCall } from './model.js'

/**
 * Refuses requests that a real provider would reject or misread: a call without its one result right behind it, a result without its
 * call, an approval that the provider did not request itself, a `client.*` tool, a message without content.
 *
 * @throws CountersignError `unreconciled-history`
 */
export function checkModelRequest({ messages }: Pick<ModelRequest, 'messages'>): void {
  let calls: readonly ModelToolCall[] = []
  messages.forEach((message, index) => {
    if (message.content.length === 0) refuse(`message ${index} (${message.role}) is empty`)
    if (message.role === 'tool') {
      checkAnswers(calls, message)
      calls = []
      return
    }
    checkAnswers(calls, undefined)
    calls = message.role === 'assistant' ? message.content.filter((part) => part.type === 'tool-call') : []
    for (const call of calls) checkCall(call)
    if (new Set(calls.map(({ id }) => id)).size < calls.length)
      refuse(`message ${index} holds two calls with one id`)
  })
  checkAnswers(calls, undefined)
}

function checkCall({ id, name, approval, providerExecuted }: ModelToolCall): void {
  if (name.startsWith('client.')) refuse(`the call ${id} is of ${name}, which no model may see`)
  if (approval !== undefined && !providerExecuted) refuse(`the call ${id} still carries an approval`)
}

function checkAnswers(
  calls: readonly ModelToolCall[],
  message: Extract<ModelMessage, { role: 'tool' }> | undefined,
): void {
  const open = new Map(calls.map((call) => [call.id, call]))
  for (const { type, toolCallId } of message?.content ?? []) {
    const call = open.get(toolCallId)
    if (call === undefined) refuse(`the answer for ${toolCallId} has no call right before it`)
    if (type === 'approval-response' && !call?.providerExecuted)
      refuse(`the call ${toolCallId} is answered by an approval that its provider did not ask for`)
    open.delete(toolCallId)
  }
  for (const { id, providerExecuted } of open.values())
    if (!providerExecuted) refuse(`the call ${id} has no result`)
}

function refuse(what: string): never {
  throw new CountersignError('unreconciled-history', `No provider would take this request: ${what}.`)
}
