import { isRecord } from '@countersign/core'
import type { ModelReasoning, ModelText, ModelToolCall, ModelToolResult } from '@countersign/server'
import { asRecord, asText, isSuccess, parseJson } from '@countersign/server/model-kit'
import type { Language, Outcome, Part, ToolType } from '@google/genai'

type Said = ModelText | ModelReasoning | ModelToolCall

/** Replaces the signature of a call that another model made: Gemini 3 rejects a call without one. */
const foreignCall = 'skip_thought_signature_validator'

/**
 * Converts one step of the model to its original parts, in order and with their signatures. Reasoning, calls
 * and approval requests of other providers are left out.
 *
 * @param results of provider-executed calls
 */
export function modelParts(
  said: readonly Said[],
  results: ReadonlyMap<string, ModelToolResult>,
  model: string,
): readonly Part[] {
  return said.flatMap((part): readonly Part[] => {
    switch (part.type) {
      case 'text':
        return textParts(part)
      case 'reasoning':
        return thoughtParts(part)
      case 'tool-call':
        return part.providerExecuted ? providedParts(part, results.get(part.id)) : [callPart(part, model)]
      default:
        return part satisfies never
    }
  })
}

function textParts({ text, metadata }: ModelText): readonly Part[] {
  const thoughtSignature = asText(metadata?.thoughtSignature)
  if (thoughtSignature === undefined) return [{ text }]
  return metadata?.apart === true ? [{ text }, { text: '', thoughtSignature }] : [{ text, thoughtSignature }]
}

/** Reasoning is sent back only if it is signed. */
function thoughtParts({ text, signature, metadata }: ModelReasoning): readonly Part[] {
  if (signature === undefined) return []
  switch (metadata?.type) {
    case 'thought':
      return [{ text, thought: true, thoughtSignature: signature }]
    case 'text':
      return [{ text, thoughtSignature: signature }]
    default:
      return []
  }
}

function callPart({ id, name, arguments: text, signature, metadata }: ModelToolCall, model: string): Part {
  const functionCall = { id, name, args: argsOf(text) }
  if (metadata?.type !== 'functionCall')
    return { functionCall, ...(/gemini-3/.test(model) && { thoughtSignature: foreignCall }) }
  return { functionCall, ...(signature !== undefined && { thoughtSignature: signature }) }
}

/** The provider accepts only objects. Other arguments of the model are wrapped, so that the model still sees them. */
function argsOf(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  const args = parseJson(text)
  return isRecord(args) ? { ...args } : { invalid: text }
}

/** A search that grounded the reply was not part of it, and is not sent back. */
function providedParts(call: ModelToolCall, result: ModelToolResult | undefined): readonly Part[] {
  const { metadata, signature } = call
  const signed = signature === undefined ? {} : { thoughtSignature: signature }
  const args = asRecord(parseJson(call.arguments))
  switch (metadata?.type) {
    case 'executableCode': {
      const id = asText(metadata.id)
      const own = id === undefined ? {} : { id }
      const language = asText(args.language) as Language | undefined
      const executableCode = { ...own, ...(language && { language }), code: asText(args.code) ?? '' }
      return [{ executableCode, ...signed }, ...codeResultParts(own, result)]
    }
    case 'toolCall': {
      const toolType = asText(metadata.toolType) as ToolType | undefined
      const own = { id: call.id, ...(toolType && { toolType }) }
      return [{ toolCall: { ...own, args: { ...args } }, ...signed }, ...toolResponseParts(own, result)]
    }
    default:
      return []
  }
}

function codeResultParts(
  own: { readonly id?: string },
  result: ModelToolResult | undefined,
): readonly Part[] {
  if (result?.metadata?.type !== 'codeExecutionResult') return []
  const { outcome, metadata } = result
  const output = isSuccess(outcome) ? outcome.value : outcome.reason
  const status = (asText(metadata.status) ?? 'OUTCOME_OK') as Outcome
  return [
    {
      codeExecutionResult: { ...own, outcome: status, output: asText(output) ?? '' },
      ...signatureOf(result),
    },
  ]
}

function toolResponseParts(
  own: { readonly id: string; readonly toolType?: ToolType },
  result: ModelToolResult | undefined,
): readonly Part[] {
  if (result?.metadata?.type !== 'toolResponse' || !isSuccess(result.outcome)) return []
  return [
    { toolResponse: { ...own, response: { ...asRecord(result.outcome.value) } }, ...signatureOf(result) },
  ]
}

function signatureOf({ metadata }: ModelToolResult): { thoughtSignature?: string } {
  const thoughtSignature = asText(metadata?.thoughtSignature)
  return thoughtSignature === undefined ? {} : { thoughtSignature }
}
