import type { ApprovalPolicy } from '@countersign/core'
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { quoted } from './quoted.js'

/**
 * Whether a person is asked about a tool whose annotations the application trusts, by what the tool says of itself. A hint that is absent counts as the worst that it could say, as the
 * MCP specification has it: not read-only, destructive, in touch with the outside. So only what says that it stays inside, and that it
 * reads or at least destroys nothing, runs unasked.
 */
export function asksByAnnotations({ annotations = {} }: Pick<Tool, 'annotations'>): boolean {
  const { openWorldHint = true } = annotations
  return openWorldHint || mayDestroy(annotations)
}

/** A tool that calls itself both read-only and destructive is believed the worse. */
function mayDestroy({ readOnlyHint = false, destructiveHint }: NonNullable<Tool['annotations']>): boolean {
  return destructiveHint ?? !readOnlyHint
}

/** The terms of an approval for a tool that is asked about. Every yes is for one call. */
export function approvalOf(name: string, server: string, tool: Tool): ApprovalPolicy {
  return { required: true, message: messageFor(name, server, tool), options: ['deny', 'once'] }
}

/** Our own words first, then what the server says of its tool. */
function messageFor(name: string, server: string, { description }: Tool): string {
  const ours = `The tool ${name} of the MCP server ${server} wants to run. Check its arguments before you approve.`
  if (description === undefined || description.trim() === '') return ours
  return `${ours}\n\nThe server says of it: ${quoted(description)}`
}
