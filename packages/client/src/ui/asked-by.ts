import { type DisplayText, displayText, readSubagent } from '@countersign/core'

/** The subagents that a request comes from, the outermost first, as in `approvalView`; empty if the agent itself asks. */
export function askersOf(metadata: unknown): readonly DisplayText[] {
  const asker = readSubagent(metadata)
  if (!asker) return []
  return [...(asker.parents ?? []), asker].map(({ id, name }) =>
    displayText(name ?? id, { multiline: false }),
  )
}

/** The text before each name. The subagent that asks comes first, then those it works for. */
export function askedBy(
  askers: readonly DisplayText[],
): readonly { readonly before: string; readonly name: DisplayText }[] {
  return askers
    .toReversed()
    .map((name, index) => ({ before: index === 0 ? 'Requested by the subagent' : ', for', name }))
}
