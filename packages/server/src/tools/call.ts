import { readArguments } from '../encoding/canonical.js'
import { copyOf } from '../encoding/copy.js'
import { failed, type ToolFailure } from '../outcome.js'
import { type ProviderTool, providerTool } from './provider-tool.js'
import { validate } from './schema.js'
import { type AgentTool, isReserved, type Toolkit } from './toolkit.js'

export interface ProposedCall {
  readonly id: string
  readonly name: string
  /** JSON text. */
  readonly arguments: string
  /** The model's provider runs it, not this server. */
  readonly providerExecuted?: boolean | undefined
  /** The id of the provider's own approval request. */
  readonly approvalId?: string | undefined
}

/** A call that could run: its tool exists (or is the provider's), and its arguments passed strict parsing and the schema. */
export interface ReadyCall extends ProposedCall {
  readonly tool: AgentTool | ProviderTool
  /** RFC 8785 text of the arguments; `args` is parsed from it. */
  readonly canonical: string
  readonly args: unknown
  /** What the schema returned for `args`. */
  readonly input: unknown
}

export type CallReading =
  | { readonly ok: true; readonly call: ReadyCall }
  /** `error`: what its schema threw, only for a log. */
  | { readonly ok: false; readonly failure: ToolFailure; readonly error?: unknown }

/** Where a call is read: the tools, and how long their schemas may take. */
interface Reading {
  readonly toolkit: Toolkit
  readonly leave: AbortSignal | undefined
}

/** Parses a call strictly and validates it. A call that fails neither runs nor gets an approval request. */
export async function readCall({ toolkit, leave }: Reading, call: ProposedCall): Promise<CallReading> {
  if (isReserved(call.name)) return refuse('denied', 'This tool is not for a model to call.')
  const tool = call.providerExecuted ? providerTool(call.name) : toolkit.get(call.name)
  if (tool === undefined)
    return refuse('unknown_tool', `There is no tool named ${JSON.stringify(call.name)}.`)
  const read = readArguments(call.arguments)
  if (!read.ok)
    return refuse('execution_error', `The arguments for ${call.name} are not acceptable: ${read.reason}`)
  // A copy, because a schema may modify what it validates, and `args` must stay what the model wrote.
  const checked = await validate(tool.input, copyOf(read.value), leave)
  if (!checked.ok) {
    const refused = refuse('execution_error', `The arguments for ${call.name} do not fit: ${checked.reason}`)
    return 'error' in checked ? { ...refused, error: checked.error } : refused
  }
  const { canonical, value: args } = read
  return { ok: true, call: { ...call, tool, canonical, args, input: checked.value } }
}

function refuse(kind: ToolFailure['kind'], reason: string): Extract<CallReading, { ok: false }> {
  return { ok: false, failure: failed(kind, reason) }
}
