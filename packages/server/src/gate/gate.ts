import { failed, type GateContext, type ToolFailure } from '@countersign/core'
import { readArguments } from './canonical.js'
import { validate } from './schema.js'
import { type AgentTool, isReserved, type Toolkit } from './toolkit.js'

/** A call as a model made it. */
export interface ProposedCall {
  readonly id: string
  readonly name: string
  /** JSON text. */
  readonly arguments: string
}

/** A call that could run: its tool exists, its arguments were read strictly and fit the schema. */
export interface ReadyCall extends ProposedCall {
  readonly tool: AgentTool
  /** RFC 8785 text of the arguments; its parse is `args`. */
  readonly canonical: string
  readonly args: unknown
  /** What the schema made of `args`. */
  readonly input: unknown
}

export type CallReading =
  | { readonly ok: true; readonly call: ReadyCall }
  | { readonly ok: false; readonly failure: ToolFailure }

/** What an application's policy looks at. */
export interface PolicyCall {
  readonly toolName: string
  readonly toolCallId: string
  /** Validated. */
  readonly input: unknown
  readonly location: AgentTool['location']
}

/** Lets a call run unasked, asks the person, or forbids it. */
export type PolicyDecision =
  | 'allow'
  | 'ask'
  | 'block'
  | { readonly decision: 'allow' | 'ask' | 'block'; readonly reason?: string }

/** Decides before the tool's own `needsApproval`; nothing (`undefined`) leaves the decision to it. A throw asks. */
export type Policy = (
  call: PolicyCall,
  context: GateContext,
) => PolicyDecision | undefined | Promise<PolicyDecision | undefined>

export type GateDecision =
  | { readonly kind: 'run' }
  | { readonly kind: 'ask' }
  | { readonly kind: 'block'; readonly reason: string | undefined }

export type Warn = (message: string, error?: unknown) => void

/** Reads a call strictly and validates it. What does not pass is neither asked about nor run. */
export async function readCall(toolkit: Toolkit, call: ProposedCall): Promise<CallReading> {
  if (isReserved(call.name)) return refuse('denied', `The tool ${call.name} is not for the model to call.`)
  const tool = toolkit.get(call.name)
  if (tool === undefined)
    return refuse('unknown_tool', `There is no tool named ${JSON.stringify(call.name)}.`)
  const read = readArguments(call.arguments)
  if (!read.ok)
    return refuse('execution_error', `The arguments for ${call.name} are not acceptable: ${read.reason}`)
  const checked = await validate(tool.input, read.value)
  if (!checked.ok)
    return refuse('execution_error', `The arguments for ${call.name} do not fit: ${checked.reason}`)
  const { canonical, value: args } = read
  return { ok: true, call: { ...call, tool, canonical, args, input: checked.value } }
}

function refuse(kind: ToolFailure['kind'], reason: string): CallReading {
  return { ok: false, failure: failed(kind, reason) }
}

/** What is to happen with a call: policy first, then the tool's own `needsApproval`. Doubt means asking. */
export async function decideGate(
  call: ReadyCall,
  context: GateContext,
  options: { readonly policy?: Policy | undefined; readonly warn: Warn },
): Promise<GateDecision> {
  const policy = await askPolicy(call, context, options)
  switch (policy.decision) {
    case 'block':
      return { kind: 'block', reason: policy.reason }
    case 'allow':
      return { kind: 'run' }
    case 'ask':
      return { kind: 'ask' }
    case undefined:
      return { kind: (await needsApproval(call.tool, call.input, context, options.warn)) ? 'ask' : 'run' }
    default:
      return policy.decision satisfies never
  }
}

/** What the policy says about a call; `ask` where it throws or answers nonsense. */
export async function askPolicy(
  call: ReadyCall,
  context: GateContext,
  { policy, warn }: { readonly policy?: Policy | undefined; readonly warn: Warn },
): Promise<{
  readonly decision: 'allow' | 'ask' | 'block' | undefined
  readonly reason?: string | undefined
}> {
  if (policy === undefined) return { decision: undefined }
  try {
    const subject = {
      toolName: call.name,
      toolCallId: call.id,
      input: call.input,
      location: call.tool.location,
    }
    const said = await policy(subject, context)
    if (said === undefined) return { decision: undefined }
    const { decision, reason } = typeof said === 'string' ? { decision: said, reason: undefined } : said
    if (decision === 'allow' || decision === 'ask' || decision === 'block') return { decision, reason }
    warn(`The policy answered ${JSON.stringify(said)} for ${call.name}; the person is asked.`)
  } catch (error) {
    warn(`The policy failed for ${call.name}; the person is asked.`, error)
  }
  return { decision: 'ask' }
}

async function needsApproval(
  tool: AgentTool,
  input: unknown,
  context: GateContext,
  warn: Warn,
): Promise<boolean> {
  const rule = tool.needsApproval
  if (rule === undefined || rule === false) return false
  if (typeof rule !== 'function') return true
  try {
    const needed: unknown = await rule(input as never, context)
    return needed !== false
  } catch (error) {
    warn(`needsApproval of ${tool.name} failed; the person is asked.`, error)
    return true
  }
}

/**
 * Whether a tool's own rule wants a person's yes for a call. `false` for arguments that are unreadable or do not fit: such a call
 * is not asked about, and not run either. A rule that throws, rejects or answers anything but `false` means yes.
 */
export async function isApprovalNeeded(
  tool: AgentTool,
  call: { readonly id: string; readonly arguments: string },
  context: Partial<Omit<GateContext, 'toolCallId'>> & { readonly warn?: Warn } = {},
): Promise<boolean> {
  const read = readArguments(call.arguments)
  if (!read.ok) return false
  const checked = await validate(tool.input, read.value)
  if (!checked.ok) return false
  const { messages = [], context: services = {}, warn = () => {} } = context
  return needsApproval(tool, checked.value, { toolCallId: call.id, messages, context: services }, warn)
}
