import { CountersignError, type JsonSchema, type ServerTool, type ToolContext } from '@countersign/core'
import { tool as serverTool } from '@countersign/server'
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { approvalOf, asksByAnnotations } from './asking.js'
import type { McpResult } from './result.js'
import {
  inputSchemaOf,
  type McpInput,
  type McpInputSchema,
  outputSchemaOf,
  type SchemaOptions,
} from './schemas.js'
import { checkCollisions, namespaced } from './tool-name.js'

/** A tool of an MCP server as a server tool. */
export type McpTool = ServerTool<string, McpInputSchema, unknown>

/** Terms of a tool that an application may override. `needsApproval` overrides the annotations. */
export type McpToolTerms = Pick<
  Partial<McpTool>,
  | 'needsApproval'
  | 'approval'
  | 'message'
  | 'scopes'
  | 'scopeKey'
  | 'allowEdits'
  | 'redact'
  | 'expiresIn'
  | 'failureMode'
  | 'idempotent'
>

/** How a server's tools become an agent's tools. */
export interface ConversionOptions extends SchemaOptions {
  readonly server: string
  readonly include?: ((tool: Tool) => boolean) | undefined
  readonly rename?: ((toolName: string) => string) | undefined
  readonly configure?: ((tool: Tool) => McpToolTerms | undefined) | undefined
  readonly trustAnnotations?: boolean | readonly string[] | undefined
  readonly result?: ((result: McpResult, tool: Tool) => unknown) | undefined
}

/** Runs a call. */
export type Run = (tool: Tool, input: McpInput, context: ToolContext) => Promise<McpResult>

/**
 * Converts a server's tools to server tools. Errors of tools that can't be converted are passed to `refuse`, which may throw.
 *
 * @throws CountersignError `invalid-tool` if two tools have one name.
 */
export function convertTools(
  listed: readonly Tool[],
  options: ConversionOptions,
  run: Run,
  refuse: (error: unknown) => void,
): readonly McpTool[] {
  const { server, include = () => true } = options
  const converted = listed.filter(include).flatMap((tool) => {
    try {
      return [convertTool(tool, options, run)]
    } catch (error) {
      refuse(error)
      return []
    }
  })
  checkCollisions(
    server,
    converted.map(({ name }) => name),
  )
  return converted
}

function convertTool(tool: Tool, options: ConversionOptions, run: Run): McpTool {
  const { server, rename = (name) => name, configure, trustAnnotations = true, result } = options
  if (tool.execution?.taskSupport === 'required') throw needsTasks(tool, server)
  const name = namespaced(server, tool.name, rename(tool.name))
  const described = { ...options, tool }
  const isTrusted = Array.isArray(trustAnnotations) && trustAnnotations.includes(tool.name)
  const asks = !isTrusted || asksByAnnotations(tool)
  return serverTool<string, McpInputSchema, unknown>({
    name,
    description: tool.description ?? tool.title ?? tool.name,
    input: inputSchemaOf(described),
    output: result === undefined ? outputSchemaOf(described) : undefined,
    toolServer: server,
    parameters: tool.inputSchema satisfies JsonSchema,
    version: JSON.stringify([tool.title, tool.description, tool.annotations]),
    bind: () => definitionOf(tool),
    ...(asks && { approval: approvalOf(name, server, tool) }),
    ...(trustAnnotations && tool.annotations && { annotations: tool.annotations }),
    ...configure?.(tool),
    execute: async (input: McpInput, context) => {
      const returned = await run(tool, input, context)
      return result === undefined ? returned : result(returned, tool)
    },
  })
}

/** A tool's description by its server. Approvals are bound to it: if the server changes it later, an earlier approval is not valid. */
export function definitionOf({ name, title, description, inputSchema, annotations }: Tool): unknown {
  return JSON.parse(JSON.stringify({ name, title, description, inputSchema, annotations }))
}

function needsTasks({ name }: Tool, server: string): CountersignError {
  return new CountersignError(
    'invalid-tool',
    `The tool ${JSON.stringify(name)} of the MCP server ${server} runs as a task of MCP only, which is experimental there and not supported here: leave it out (option \`include\`).`,
    { server, tool: name },
  )
}
