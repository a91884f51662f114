import type { TokenUsage } from '@countersign/core'
import type { RunUsage } from '../threads/thread-store.js'

/** The sum of what runs have used: one entry for each provider and model, in the order of their first use. */
export function totalUsage(runs: readonly RunUsage[]): readonly TokenUsage[] {
  const totals = new Map<string, TokenUsage>()
  for (const one of runs.flatMap(({ usage }) => usage)) {
    const key = JSON.stringify([one.provider, one.model])
    const total = totals.get(key)
    totals.set(key, total === undefined ? one : added(total, one))
  }
  return [...totals.values()]
}

const COUNTS = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
  'cacheWriteInputTokens',
] as const

/** A count that neither has stays absent. */
function added(total: TokenUsage, one: TokenUsage): TokenUsage {
  const sum: TokenUsage = { ...total }
  for (const name of COUNTS) if (one[name] !== undefined) sum[name] = (total[name] ?? 0) + one[name]
  return sum
}
