import { CountersignError, type JsonSchema } from '@countersign/core'
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'
import { callHook, isLeft } from '../encoding/hooks.js'
import { isToolError } from './tool-errors.js'

export type Validation =
  | { readonly ok: true; readonly value: unknown }
  /** Names what is wrong and where. */
  | { readonly ok: false; readonly reason: string }
  /** The schema threw; the error is only for a log. */
  | { readonly ok: false; readonly reason: string; readonly error: unknown }

/** Validates a value with any Standard Schema, sync or async: a hook, left with `leave`. A schema that throws counts as invalid. */
export async function validate(
  schema: StandardSchemaV1,
  value: unknown,
  leave: AbortSignal | undefined,
): Promise<Validation> {
  try {
    const result = await callHook(leave, () => schema['~standard'].validate(value))
    return result.issues === undefined
      ? { ok: true, value: result.value }
      : { ok: false, reason: result.issues.map(describeIssue).join('; ') || 'it does not fit the schema' }
  } catch (error) {
    if (isLeft(error)) throw error
    return { ok: false, reason: isToolError(error) ? error.message : 'the schema failed', error }
  }
}

function describeIssue(issue: StandardSchemaV1.Issue): string {
  const path = issue.path?.map((step) => String(typeof step === 'object' ? step.key : step)).join('.')
  return path ? `${path}: ${issue.message}` : issue.message
}

/** Accepts any value unchanged: for tools that somebody else validates. */
export const anything: StandardSchemaV1 = {
  '~standard': { version: 1, vendor: 'countersign', validate: (value) => ({ value }) },
}

/** What to use for libraries that don't produce JSON Schema themselves. */
const CONVERTERS: ReadonlyMap<string, string> = new Map([
  ['valibot', 'toJsonSchema(schema) of @valibot/to-json-schema'],
  ['zod', 'z.toJSONSchema(schema) of zod 4, or zod 4.2 and later'],
  ['arktype', 'schema.toJsonSchema()'],
  ['effect', 'JSONSchema.make(schema) of effect'],
  ['typebox', 'the schema itself'],
])

/**
 * JSON Schema of a tool's parameters: the tool's own, else that of its schema.
 *
 * @throws CountersignError `invalid-tool` if there is neither; the message names the converter.
 */
export function parametersOf(tool: {
  readonly name: string
  readonly input: StandardSchemaV1
  readonly parameters?: JsonSchema | undefined
}): JsonSchema {
  return tool.parameters ?? jsonSchemaOf(tool.input, 'parameters', tool.name)
}

/**
 * The JSON Schema that a schema produces. `option` is the option of the tool, or of the agent, for giving it explicitly.
 *
 * @throws CountersignError `invalid-tool`, or without a tool `invalid-option`, if it produces none; the message names the converter.
 */
export function jsonSchemaOf(
  schema: StandardSchemaV1,
  option: 'parameters' | 'responseSchema' | 'outputSchema',
  tool?: string,
): JsonSchema {
  const [code, subject] =
    tool === undefined
      ? (['invalid-option', 'The output'] as const)
      : (['invalid-tool', `The tool ${tool}`] as const)
  const { vendor } = schema['~standard']
  const converter = CONVERTERS.get(vendor) ?? `the JSON Schema converter of ${vendor}`
  if (!describesItself(schema)) {
    const message = `${subject} needs \`${option}\`: its schema (${vendor}) does not produce JSON Schema by itself. Give ${option}: ${converter}.`
    throw new CountersignError(code, message, { tool, vendor })
  }
  try {
    const { $schema: _, ...described } = schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' })
    return described
  } catch (error) {
    const message = `${subject} has a schema (${vendor}) that cannot be written as JSON Schema: give \`${option}\` yourself.`
    throw new CountersignError(code, message, { tool, vendor }, error)
  }
}

function describesItself(schema: StandardSchemaV1): schema is StandardSchemaV1 & StandardJSONSchemaV1 {
  const standard: object = schema['~standard']
  return 'jsonSchema' in standard && typeof standard.jsonSchema === 'object'
}
