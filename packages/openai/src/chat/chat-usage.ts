import { isRecord, type TokenUsage } from '@countersign/core'
import { asNumber, asRecord } from '@countersign/server/model-kit'

/** Token usage as AG-UI counts it: reasoning tokens are part of the output. */
export function usageOf(usage: unknown): TokenUsage | undefined {
  if (!isRecord(usage)) return undefined
  const { prompt_tokens, completion_tokens, total_tokens } = usage
  const input = asNumber(prompt_tokens)
  const output = asNumber(completion_tokens)
  const total = asNumber(total_tokens)
  const reasoning = asNumber(asRecord(usage.completion_tokens_details).reasoning_tokens)
  const cached = asNumber(asRecord(usage.prompt_tokens_details).cached_tokens)
  // xAI excludes reasoning from the output tokens, which only the total reveals.
  const apart =
    total !== undefined && total === (input ?? 0) + (output ?? 0) + (reasoning ?? 0) ? (reasoning ?? 0) : 0
  return {
    ...(input !== undefined && { inputTokens: input }),
    ...(output !== undefined && { outputTokens: output + apart }),
    ...(total !== undefined && { totalTokens: total }),
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
    ...(cached !== undefined && { cachedInputTokens: cached }),
  }
}
