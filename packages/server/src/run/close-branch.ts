import type { Message, ToolMessage } from '@countersign/core'
import { outcomeOfOpenCall } from '../answers/open-call.js'
import { readHistory } from '../answers/records.js'
import { resultMessage } from '../history/history.js'
import type { RunScope } from '../scope/scope.js'

/** Closes open calls as if the user had moved on: their approval requests are settled in the ledger, so nobody can answer them any more. */
export async function closeBranch(
  scope: RunScope,
  messages: readonly Message[],
  ids: ReadonlySet<string>,
): Promise<readonly ToolMessage[]> {
  const movedOn: Message = { id: '', role: 'user', content: '' }
  const read = await readHistory(scope, [...messages, movedOn])
  const results: ToolMessage[] = []
  for (const site of read.sites) {
    if (site.result !== undefined || !ids.has(site.message.id)) continue
    const closed = await outcomeOfOpenCall(scope, site, read.issued, undefined, read.messages)
    if (closed.kind !== 'result') continue
    const { outcome, decided } = closed
    results.push(resultMessage(scope.settings.generateId(), site.call.id, outcome, { decided }))
  }
  return results
}
