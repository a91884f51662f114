import { type DisplayText, displayText, readSubagent } from '@countersign/core'

/** The subagents that ask, the outermost first, as `approvalView` has them; none where the agent itself asks. */
export function askersOf(metadata: unknown): readonly DisplayText[] {
  const asker = readSubagent(metadata)
  if (!asker) return []
  return [...(asker.parents ?? []), asker].map(({ id, name }) =>
    displayText(name ?? id, { multiline: false }),
  )
}

/** What stands before each name: the one that asks comes first, then those that it works for. */
export function askedBy(
  askers: readonly DisplayText[],
): readonly { readonly before: string; readonly name: DisplayText }[] {
  return askers
    .toReversed()
    .map((name, index) => ({ before: index === 0 ? 'Asked by the subagent' : ', for', name }))
}
