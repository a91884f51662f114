import {
  type AnyServerTool,
  CountersignError,
  failed,
  type Message,
  type ToolOutcome,
} from '@countersign/core'
import { type ApprovalRequest, requestApproval } from '../gate/ask.js'
import { decideGate } from '../gate/gate.js'
import { useGrant } from '../gate/grants.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import { type ProposedCall, type ReadyCall, readCall } from '../tools/call.js'
import { executeTool } from '../tools/execute.js'
import { progressEvent } from '../tools/progress.js'

/** What is to happen with a call that the model has just made. */
export type FreshDecision =
  | { readonly kind: 'refused'; readonly outcome: ToolOutcome }
  | { readonly kind: 'run'; readonly call: ReadyCall; readonly tool: AnyServerTool }
  | { readonly kind: 'client'; readonly call: ReadyCall }
  | { readonly kind: 'ask'; readonly request: ApprovalRequest }

/** Decides about one call, once: it is refused, runs, is left to the client, or the person is asked. */
export async function decideFresh(
  scope: RunScope,
  proposed: ProposedCall,
  messages: readonly Message[],
): Promise<FreshDecision> {
  const read = await readCall(scope.toolkit, proposed)
  if (!read.ok) return { kind: 'refused', outcome: read.failure }
  const { call } = read
  const { approvals, warn } = scope.settings
  const context = gateContext(scope, call.id, messages)
  const gate = await decideGate(call, context, { policy: approvals.policy, warn })
  switch (gate.kind) {
    case 'block':
      return { kind: 'refused', outcome: failed('denied', gate.reason) }
    case 'run':
      return cleared(call)
    case 'ask': {
      if (await useGrant(scope, call)) return cleared(call)
      const asking = await requestApproval(scope, call, context)
      return asking.ok
        ? { kind: 'ask', request: asking.request }
        : { kind: 'refused', outcome: asking.failure }
    }
    default:
      return gate satisfies never
  }
}

function cleared(call: ReadyCall): FreshDecision {
  return call.tool.location === 'server' ? { kind: 'run', call, tool: call.tool } : { kind: 'client', call }
}

/** How a call that needed nobody's yes ended. */
export type FreshResult =
  | { readonly kind: 'outcome'; readonly outcome: ToolOutcome }
  | { readonly kind: 'threw'; readonly error: CountersignError }

/** Runs a call that needs nobody's yes. It stops with the run. */
export async function runFresh(
  scope: RunScope,
  { call, tool }: Extract<FreshDecision, { kind: 'run' }>,
  messages: readonly Message[],
): Promise<FreshResult> {
  const { id: toolCallId, name } = call
  const execution = await executeTool({
    tool,
    input: call.input,
    signal: scope.stop,
    onAbort: 'leave',
    context: {
      toolCallId,
      messages,
      context: scope.context,
      idempotencyKey: `${scope.runId}:${toolCallId}`,
      progress: (data) => void scope.emit(progressEvent(toolCallId, name, data)),
    },
  })
  switch (execution.kind) {
    case 'finished':
      return { kind: 'outcome', outcome: execution.outcome }
    case 'interrupted':
      return { kind: 'outcome', outcome: failed('execution_error', execution.reason, 'interrupted') }
    case 'threw': {
      if (tool.failureMode !== 'throw') return { kind: 'outcome', outcome: execution.failure }
      const error = new CountersignError(
        'tool-failed',
        `The tool ${name} failed.`,
        { tool: name },
        execution.error,
      )
      return { kind: 'threw', error }
    }
    default:
      return execution satisfies never
  }
}
