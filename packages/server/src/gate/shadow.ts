import type { GateContext } from '@countersign/core'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'
import type { ReadyCall } from '../tools/call.js'
import { decideGate, type GateDecision } from './gate.js'

/** Records in the audit trail what the shadow policy would have decided about a call, if that differs. It decides nothing. */
export async function recordShadow(
  scope: RunScope,
  call: ReadyCall,
  context: GateContext,
  decided: GateDecision,
): Promise<void> {
  const { approvals, warn } = scope.settings
  if (approvals.shadow === undefined) return
  // The tool's own rule is evaluated once, unless the policy decided instead of it.
  const needed = decided.kind === 'run' && !decided.approved ? false : undefined
  const shadow = await decideGate(call, context, {
    policy: approvals.shadow,
    ...{ warn, needed, leave: scope.leave },
  })
  if (shadow.kind === decided.kind) return
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
