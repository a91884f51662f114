import { CountersignError, type GateContext, type ToolAnnotations } from '@countersign/core'

/** What an application's policy looks at. */
export interface PolicyCall {
  readonly toolName: string
  readonly toolCallId: string
  /** Validated. Of a call that the provider runs itself: its arguments as they are. */
  readonly input: unknown
  /** `provider`: the model's provider runs it (MCP inside the provider) once it is told of the answer. */
  readonly location: 'server' | 'client' | 'provider'
  /** What the tool's maker says of its effects. */
  readonly annotations: ToolAnnotations
}

/** Lets a call run unasked, asks the person, or forbids it. */
export type PolicyDecision =
  | 'allow'
  | 'ask'
  | 'block'
  | { readonly decision: 'allow' | 'ask' | 'block'; readonly reason?: string | undefined }

/** Decides before the tool's own `needsApproval`; nothing (`undefined`) leaves the decision to it. A throw asks. */
export type Policy = (
  call: PolicyCall,
  context: GateContext,
) => PolicyDecision | undefined | Promise<PolicyDecision | undefined>

/**
 * How much an agent may do by itself. A tool counts as reading where its `annotations.readOnlyHint` is true.
 * `read`: it may only read; everything else is blocked, also where a policy would allow it.
 * `ask`: whatever does more than read is asked about, unless the policy says otherwise.
 * `auto`: nothing is asked about, unless the policy says otherwise.
 */
export type PermissionLevel = 'read' | 'ask' | 'auto'

const LEVELS: readonly unknown[] = ['read', 'ask', 'auto'] satisfies PermissionLevel[]

/**
 * A permission level and a policy as one policy.
 *
 * @throws CountersignError `invalid-option` for another level.
 */
export function withPermission(
  level: PermissionLevel | undefined,
  policy: Policy | undefined,
): Policy | undefined {
  if (level === undefined) return policy
  if (!LEVELS.includes(level)) {
    throw new CountersignError(
      'invalid-option',
      `approvals.permission must be read, ask or auto, not ${level}.`,
      { option: 'approvals.permission' },
    )
  }
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
