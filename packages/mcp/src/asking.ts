import type { ApprovalPolicy } from '@countersign/core'
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { quoted } from './quoted.js'

/**
 * Whether a tool requires approval, judged by its annotations, which the application trusts. A missing hint counts as the worst, as the
 * MCP specification says: not read-only, destructive, open-world. So a tool runs without approval only if it claims to be closed-world,
 * and read-only or at least not destructive.
 */
export function asksByAnnotations({ annotations = {} }: Pick<Tool, 'annotations'>): boolean {
  const { openWorldHint = true } = annotations
  return openWorldHint || mayDestroy(annotations)
}

/** If a tool claims to be both read-only and destructive, it counts as destructive. */
function mayDestroy({ readOnlyHint = false, destructiveHint }: NonNullable<Tool['annotations']>): boolean {
  return destructiveHint ?? !readOnlyHint
}

/** The terms of approval for a tool that needs it. Every approval is for one call. */
export function approvalOf(name: string, server: string, tool: Tool): ApprovalPolicy {
  return { required: true, message: messageFor(name, server, tool), options: ['deny', 'once'] }
}

/** Our own message first, then the server's description of its tool. */
function messageFor(name: string, server: string, { description }: Tool): string {
  const ours = `The tool ${name} of the MCP server ${server} wants to run. Check its arguments before you approve.`
  if (description === undefined || description.trim() === '') return ours
  return `${ours}\n\nThe server says of it: ${quoted(description)}`
}
