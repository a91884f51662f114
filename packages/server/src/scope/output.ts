import { CountersignError, type JsonSchema, sameJson } from '@countersign/core'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { jsonCopy } from '../tools/progress.js'
import { jsonSchemaOf, validate } from '../tools/schema.js'

/** Options for a structured reply. */
export interface OutputOptions<Output = unknown> {
  /**
   * The schema of the reply, any Standard Schema. The model is asked for JSON of this form, which streams as text (`part.output` in the page),
   * and the run ends with the validated value: `output` of `generate`, `result` of RUN_FINISHED. A reply that does not fit ends the run with
   * `invalid-output`. Text and calls of earlier steps are as without it. A run that ends before the reply, as with an approval request, has no value.
   */
  readonly output?: StandardSchemaV1<unknown, Output> | undefined
  /** JSON Schema of the output for the model; required if the schema library cannot produce it (`~standard.jsonSchema`). */
  readonly outputSchema?: JsonSchema | undefined
}

/** {@link OutputOptions}, complete. */
export interface OutputSettings {
  readonly schema: StandardSchemaV1
  readonly json: JsonSchema
}

/** @throws CountersignError `invalid-option` if the JSON Schema is missing and can't be produced. */
export function readOutputOptions({
  output: schema,
  outputSchema,
}: OutputOptions): OutputSettings | undefined {
  if (schema === undefined) return undefined
  return { schema, json: outputSchema ?? jsonSchemaOf(schema, 'outputSchema') }
}

export interface StructuredOutput {
  readonly value: unknown
  /** For the page: whether it reads the same value from the text; if not, the value as JSON. */
  readonly verdict: true | { readonly value: unknown }
}

/**
 * Reads the structured reply from the model's text.
 *
 * @throws CountersignError `invalid-output`
 */
export async function readOutput(
  { schema }: OutputSettings,
  text: string,
  finishReason: string,
): Promise<StructuredOutput> {
  const fail = (reason: string, cause?: unknown): never => {
    const why = finishReason === 'stop' ? reason : `${reason} (the model stopped with ${finishReason})`
    const message = `The reply does not fit the output schema: ${why}.`
    throw new CountersignError('invalid-output', message, { text, reason, finishReason }, cause)
  }
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    return fail(text === '' ? 'it is empty' : 'it is not JSON', error)
  }
  const checked = await validate(schema, JSON.parse(text), undefined)
  if (!checked.ok) return fail(checked.reason, 'error' in checked ? checked.error : undefined)
  const { value } = checked
  if (sameJson(parsed, value)) return { value, verdict: true }
  return { value, verdict: { value: jsonCopy(value, 'What the output schema returned') } }
}
