import type { GateContext, ToolAnnotations } from '@countersign/core'

/** What a policy decides about. */
export interface PolicyCall {
  readonly toolName: string
  readonly toolCallId: string
  /** Validated arguments. For a call that the provider runs itself: its arguments as they are. */
  readonly input: unknown
  /** `provider`: the model's provider runs it (MCP inside the provider) once it has received the answer. */
  readonly location: 'server' | 'client' | 'provider'
  /** The tool author's hints about its effects. */
  readonly annotations: ToolAnnotations
}

/** Lets a call run without approval, requires approval, or forbids the call. */
export type PolicyDecision =
  | 'allow'
  | 'ask'
  | 'block'
  | { readonly decision: 'allow' | 'ask' | 'block'; readonly reason?: string | undefined }

/** Decides before the tool's own `needsApproval`; `undefined` leaves the decision to that. If it throws, approval is required. */
export type Policy = (
  call: PolicyCall,
  context: GateContext,
) => PolicyDecision | undefined | Promise<PolicyDecision | undefined>

/**
 * What an agent may do without approval. A tool is read-only if its `annotations.readOnlyHint` is true.
 * `read`: it may only read; everything else is blocked, even if a policy would allow it.
 * `ask`: tools that are not read-only require approval, unless the policy decides otherwise.
 * `auto`: nothing requires approval, not even a tool with `needsApproval`, unless the policy decides otherwise.
 */
export type PermissionLevel = 'read' | 'ask' | 'auto'

export function withPermission(
  level: PermissionLevel | undefined,
  policy: Policy | undefined,
): Policy | undefined {
  if (level === undefined) return policy
  return async (call, context) => {
    const permitted = decideByLevel(level, call)
    if (permitted !== undefined && typeof permitted !== 'string') return permitted
    return (await policy?.(call, context)) ?? permitted
  }
}

function decideByLevel(
  level: PermissionLevel,
  { annotations, toolName }: PolicyCall,
): PolicyDecision | undefined {
  const reads = annotations.readOnlyHint === true
  switch (level) {
    case 'read':
      return reads ? undefined : { decision: 'block', reason: `${toolName} may do more than read.` }
    case 'ask':
      return reads ? undefined : 'ask'
    case 'auto':
      return 'allow'
    default:
      return level satisfies never
  }
}
