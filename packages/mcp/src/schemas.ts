import { CountersignError } from '@countersign/core'
import type { ElicitRequestFormParams, ElicitResult, Tool } from '@modelcontextprotocol/sdk/types.js'
import type { JsonSchemaType, jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import type { Bounded } from './bounded.js'
import type { McpResult } from './result.js'

/** The arguments of a call. */
export type McpInput = Record<string, unknown>

/** A Standard Schema that validates without changing anything. */
interface CheckingSchema<Input, Output> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'countersign-mcp'
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    readonly validate: (
      value: unknown,
    ) => { readonly value: Output } | { readonly issues: readonly { readonly message: string }[] }
  }
}

/** The JSON Schema of a tool's arguments. The server gets exactly the arguments that were approved. */
export type McpInputSchema = CheckingSchema<McpInput, McpInput>

/** How a server's schemas are read and used. */
export interface SchemaOptions {
  readonly validator?: jsonSchemaValidator | undefined
  readonly bounded: Bounded
}

/** A tool whose schemas are read. */
interface Described extends SchemaOptions {
  readonly server: string
  readonly tool: Tool
}

/** @throws CountersignError `invalid-tool` if the validator can't read the schema. */
export function inputSchemaOf(described: Described): McpInputSchema {
  return checkedBy<McpInput>(compile('input', described.tool.inputSchema, described), (value) => value)
}

/**
 * Validates a tool's structured content; undefined if the tool has no output schema.
 *
 * @throws CountersignError `invalid-tool` if the validator can't read the schema.
 */
export function outputSchemaOf(described: Described): CheckingSchema<unknown, McpResult> | undefined {
  const { outputSchema } = described.tool
  if (outputSchema === undefined) return undefined
  const check = compile('output', outputSchema, described)
  return checkedBy<McpResult>(check, (value) => Object(value).structuredContent)
}

/** An answer to an elicitation. */
type Answer = NonNullable<ElicitResult['content']>

/** @throws whatever the validator throws if it can't read the schema. */
export function answerSchemaOf(
  requested: ElicitRequestFormParams['requestedSchema'],
  options: SchemaOptions,
): CheckingSchema<Answer, Answer> {
  return checkedBy<Answer>(checker(requested, options), (value) => value)
}

function checkedBy<T>(check: Check, part: (value: unknown) => unknown): CheckingSchema<T, T> {
  return {
    '~standard': {
      version: 1,
      vendor: 'countersign-mcp',
      validate: (value) => {
        const problem = check(part(value))
        return problem === undefined ? { value: value as T } : { issues: [{ message: problem }] }
      },
    },
  }
}

/** Returns what is wrong with a value. */
type Check = (value: unknown) => string | undefined

function checker(schema: object, { validator, bounded }: SchemaOptions): Check {
  // A new one per schema, because a validator keeps schemas by `$id`; and per attempt, because a stopped one keeps half a schema.
  const check = bounded(() =>
    (validator ?? new AjvJsonSchemaValidator()).getValidator(schema as JsonSchemaType),
  )
  return (value) => bounded(() => check(value).errorMessage)
}

function compile(which: 'input' | 'output', schema: object, described: Described): Check {
  const { server, tool } = described
  try {
    return checker(schema, described)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CountersignError(
      'invalid-tool',
      `The ${which} schema of the tool ${JSON.stringify(tool.name)} of the MCP server ${server} cannot be used: ${why}. Leave the tool out (option \`include\`) or give another \`validator\`.`,
      { server, tool: tool.name },
      error,
    )
  }
}
