import type { ApprovalScope, GateContext } from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { copyOf } from '../encoding/copy.js'
import { callHook, isLeft } from '../encoding/hooks.js'
import { anySignal } from '../encoding/signals.js'
import { audit } from '../scope/audit.js'
import type { Policy } from '../scope/policy.js'
import type { RunScope } from '../scope/scope.js'
import type { Warn } from '../scope/settings.js'
import type { ReadyCall } from '../tools/call.js'
import { validate } from '../tools/schema.js'
import type { AgentTool } from '../tools/toolkit.js'

export type GateDecision =
  /** `approved`: the application's policy allowed it, so the tool's own rule was not evaluated. */
  | { readonly kind: 'run'; readonly approved: boolean }
  /** `byTool`: the tool's own rule requires it. */
  | { readonly kind: 'ask'; readonly reason?: string | undefined; readonly byTool?: true }
  | { readonly kind: 'block'; readonly reason: string | undefined }

/**
 * Decides about a call: the policy first, then the tool's own rule. If in doubt, approval is required. A call that the model's provider
 * runs gets here because the provider requires approval, so it never just runs.
 */
export async function decideGate(
  scope: GateScope,
  call: ReadyCall,
  context: GateContext,
  { needed, policy }: GateOptions = {},
): Promise<GateDecision> {
  const said = await askPolicy(scope, call, context, policy)
  const isProviders = call.tool.location === 'provider'
  switch (said.decision) {
    case 'block':
      return { kind: 'block', reason: said.reason }
    case 'allow':
      return isProviders ? { kind: 'ask' } : { kind: 'run', approved: true }
    case 'ask':
      return { kind: 'ask', reason: said.reason }
    case undefined: {
      const asks = isProviders || (needed ?? (await needsApproval(scope, call, context)))
      return asks ? { kind: 'ask', byTool: true } : { kind: 'run', approved: false }
    }
    default:
      return said.decision satisfies never
  }
}

type GateScope = Pick<RunScope, 'settings' | 'leave'>

interface GateOptions {
  /** The earlier result of the tool's own rule, which is evaluated only once. */
  readonly needed?: boolean | undefined
  /** Default: the agent's. */
  readonly policy?: Policy | undefined
}

/** The policy's decision about a call; `ask` if it throws or returns anything invalid. */
export async function askPolicy(
  { settings, leave }: GateScope,
  call: ReadyCall,
  context: GateContext,
  policy = settings.approvals.policy,
): Promise<{
  readonly decision: 'allow' | 'ask' | 'block' | undefined
  readonly reason?: string | undefined
}> {
  if (policy === undefined) return { decision: undefined }
  try {
    const subject = {
      toolName: call.name,
      toolCallId: call.id,
      input: copyOf(call.input),
      location: call.tool.location,
      annotations: call.tool.annotations ?? {},
    }
    const said = await callHook(leave, () => policy(subject, context))
    if (said === undefined) return { decision: undefined }
    const { decision, reason } = typeof said === 'string' ? { decision: said, reason: undefined } : said
    if (decision === 'allow' || decision === 'ask' || decision === 'block') return { decision, reason }
    settings.warn(`The policy returned ${JSON.stringify(said)} for ${call.name}; approval is requested.`)
  } catch (error) {
    if (isLeft(error)) throw error
    settings.warn(`The policy failed for ${call.name}; approval is requested.`, error)
  }
  return { decision: 'ask' }
}

async function needsApproval(
  { settings, leave }: RuleScope,
  { tool, input }: Pick<ReadyCall, 'tool' | 'input'>,
  context: GateContext,
): Promise<boolean> {
  const rule = termsOf(tool).needed
  if (rule === false) return false
  if (typeof rule !== 'function') return true
  try {
    const needed: unknown = await callHook(leave, () => rule(copyOf(input) as never, context))
    return needed !== false
  } catch (error) {
    if (isLeft(error)) throw error
    settings.warn(`needsApproval of ${tool.name} failed; approval is requested.`, error)
    return true
  }
}

interface RuleScope {
  readonly settings: { readonly warn: Warn }
  readonly leave: AbortSignal | undefined
}

/**
 * Whether a tool's own rule requires approval for a call. `false` for arguments that can't be read or don't fit: such a call needs
 * no approval, because it never runs. A rule that throws, rejects or returns anything but `false` requires approval.
 */
export async function isApprovalNeeded(
  tool: AgentTool,
  call: { readonly id: string; readonly arguments: string },
  context: Partial<Omit<GateContext, 'toolCallId'>> & { readonly warn?: Warn } = {},
): Promise<boolean> {
  const read = readArguments(call.arguments)
  if (!read.ok) return false
  const checked = await validate(tool.input, read.value, undefined)
  if (!checked.ok) return false
  const { messages = [], context: services = {}, warn = () => {} } = context
  const about = { toolCallId: call.id, messages, context: services }
  return needsApproval({ settings: { warn }, leave: undefined }, { tool, input: checked.value }, about)
}

/** A tool's approval terms, from whichever of its options set them. */
interface ApprovalTerms {
  readonly needed: boolean | ((input: never, context: GateContext) => boolean | Promise<boolean>)
  readonly message: string | ((input: never) => string) | undefined
  readonly scopes: readonly ApprovalScope[]
}

/** Whether anything about this agent can require approval for a call; the model's provider may, for those that it runs. */
export function canAsk({ settings, toolkit }: RunScope): boolean {
  if (settings.approvals.policy !== undefined || settings.prepareStep !== undefined) return true
  return toolkit.names.some((name) => {
    const tool = toolkit.get(name)
    return tool !== undefined && termsOf(tool).needed !== false
  })
}

/** A tool's own options override its `approval`, which overrides the defaults: no approval needed, and approvals for one call. */
export function termsOf({ needsApproval, message, scopes, approval }: ReadyCall['tool']): ApprovalTerms {
  const offered = approval?.options?.filter((option) => option !== 'deny') ?? []
  return {
    needed: needsApproval ?? approval?.required ?? false,
    message: message ?? approval?.message,
    scopes: scopes ?? (offered.length > 0 ? offered : ['once']),
  }
}

/**
 * Records in the audit trail what the shadow policy would have decided about a call, if that differs. It decides nothing, so it may take no
 * longer than a preview.
 */
export async function recordShadow(
  scope: RunScope,
  call: ReadyCall,
  context: GateContext,
  decided: GateDecision,
): Promise<void> {
  const { approvals, warn } = scope.settings
  if (approvals.shadow === undefined) return
  // The tool's own rule is evaluated once, unless the policy decided instead of it.
  const ruled = decided.kind === 'run' ? !decided.approved : decided.kind === 'ask' && decided.byTool
  const needed = ruled ? decided.kind === 'ask' : undefined
  const over = AbortSignal.timeout(approvals.previewTimeout)
  const patient = { ...scope, leave: anySignal([scope.leave, over]) }
  const asked = decideGate(patient, call, context, { needed, policy: approvals.shadow })
  const shadow = await asked.catch((error: unknown) => {
    if (!isLeft(error) || !over.aborted) throw error
    warn(`The shadow policy did not decide about ${call.name} within ${approvals.previewTimeout} ms.`)
  })
  if (shadow === undefined || shadow.kind === decided.kind) return
  await audit(scope, {
    event: 'shadow',
    toolCallId: call.id,
    toolName: call.name,
    arguments: call.canonical,
    policy: {
      decided: WORDS[decided.kind],
      shadow: WORDS[shadow.kind],
      ...(shadow.kind !== 'run' && shadow.reason !== undefined && { reason: shadow.reason }),
    },
  })
}

const WORDS = { run: 'allow', ask: 'ask', block: 'block' } as const
