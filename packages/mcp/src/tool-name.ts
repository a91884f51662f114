import { CountersignError } from '@countersign/core'

/** The tool names that every model provider accepts. */
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/
/** No `__`, and no `_` at either end, so that a tool's name can be read in only one way. */
const SERVER_NAME = /^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/

/** @throws CountersignError `invalid-option` for a name that can't be the namespace of a server's tools. */
export function checkServerName(server: string): void {
  if (typeof server === 'string' && SERVER_NAME.test(server)) return
  throw new CountersignError(
    'invalid-option',
    `server must be letters, digits, "-" and single "_" inside, not ${JSON.stringify(server)}: it begins the names of the tools.`,
    { option: 'server', value: server },
  )
}

/**
 * The name of a tool for models and approvals: `mcp__server__tool`. Different servers never share one.
 *
 * @throws CountersignError `invalid-tool` for a name that providers don't accept.
 */
export function namespaced(server: string, name: string, renamed: string = name): string {
  const full = `mcp__${server}__${renamed}`
  if (TOOL_NAME.test(full) && renamed !== '') return full
  throw new CountersignError(
    'invalid-tool',
    `The tool ${JSON.stringify(name)} of the MCP server ${server} would be named ${JSON.stringify(full)}, and names are 1 to 64 letters, digits, "_" and "-": rename it (option \`rename\`) or leave it out (option \`include\`).`,
    { server, tool: name, name: full },
  )
}

/** @throws CountersignError `invalid-tool` if two tools of one server have the same name. */
export function checkCollisions(server: string, names: readonly string[]): void {
  const seen = new Set<string>()
  const twice = names.find((name) => seen.has(name) || !seen.add(name))
  if (twice === undefined) return
  throw new CountersignError(
    'invalid-tool',
    `The MCP server ${server} has two tools that would both be named ${JSON.stringify(twice)}: rename one (option \`rename\`) or leave one out (option \`include\`).`,
    { server, name: twice },
  )
}
