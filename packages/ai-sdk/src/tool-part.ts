import {
  asString,
  getCountersignMetadata,
  isRecord,
  omitUndefined,
  parseJson,
  type ToolCallApproval,
  type ToolCallPart,
  type ToolResultPart,
} from '@countersign/core'
import { aiSdkMetadata, aiSdkOf } from './mark.js'
import { type AiSdkApproval, type AiSdkTool, toolNameOf } from './message.js'

/** Fields of an AI SDK call that our part does not have. */
export function callExtras(
  part: Partial<AiSdkTool> & { readonly dynamic?: unknown },
): Record<string, unknown> {
  const { title, toolMetadata, inputEncoding, rawInput, callProviderMetadata } = part
  const dynamic = part.type === 'dynamic-tool' || part.dynamic === true || undefined
  return omitUndefined({ dynamic, title, toolMetadata, inputEncoding, rawInput, callProviderMetadata })
}

/**
 * The token of an approval request: everything the server sent with it except its id and reason, as JSON. Clients
 * send tokens back unchanged, which is what these fields need (a signature, the input before the schema changed it).
 */
function tokenOf({ id: _, approved: __, reason: ___, ...asked }: AiSdkApproval): string | undefined {
  return Object.keys(asked).length > 0 ? JSON.stringify(asked) : undefined
}

/** Parses the result of {@link tokenOf}. */
function approvalOfToken(token: string | undefined): Omit<AiSdkApproval, 'id'> {
  const asked = token === undefined ? undefined : parseJson(token)
  return isRecord(asked) ? asked : {}
}

/** An approval request in our form. */
export function requestOf(approval: AiSdkApproval): ToolCallApproval {
  return {
    id: approval.id,
    needsApproval: true,
    options: ['deny', 'once'],
    ...omitUndefined({
      ...{ message: approval.requestReason, token: tokenOf(approval) },
      ...previewsOf(approval),
    }),
  }
}

/** A Countersign server describes the previews of its request to a client of the AI SDK. */
function previewsOf({ descriptor }: AiSdkApproval): Pick<ToolCallApproval, 'preview' | 'previous'> {
  return isRecord(descriptor) ? { preview: descriptor.preview, previous: descriptor.previous } : {}
}

/** Converts a part of an AI SDK message to a call and, if it has one, its result. */
export function readToolPart(owner: string, part: AiSdkTool): readonly [ToolCallPart, ToolResultPart?] {
  const name = toolNameOf(part)
  const { toolCallId: id, input, approval, providerExecuted } = part
  const text = input === undefined ? '' : JSON.stringify(input)
  const metadata = aiSdkMetadata({
    ...callExtras(part),
    approval: approval?.isAutomatic ? approval : undefined,
  })
  const call = omitUndefined({
    type: 'tool-call' as const,
    id,
    name,
    arguments: text,
    input: text === '' ? {} : input,
    providerExecuted: providerExecuted || undefined,
    metadata,
    approval: approval && !approval.isAutomatic ? answered(approval, part) : undefined,
  })
  const result = { type: 'tool-result' as const, id: `${owner}/${id}/result`, toolCallId: id }
  const more = aiSdkMetadata({ resultProviderMetadata: part.resultProviderMetadata })
  const failure = (
    outcome: 'denied' | 'error',
    reason: string | undefined,
  ): readonly [ToolCallPart, ToolResultPart] => [
    { ...call, state: outcome, ...(reason !== undefined && { error: { message: reason } }) },
    {
      ...result,
      content: JSON.stringify({ type: `execution-${outcome}`, reason }),
      metadata: { countersign: { outcome }, ...more },
      ...(outcome === 'error' && reason !== undefined && { error: reason }),
    },
  ]
  switch (part.state) {
    case 'input-streaming':
      return [{ ...call, arguments: asString(part.rawInput) ?? text, state: 'input-streaming' }]
    case 'input-available':
      return [{ ...call, state: 'input-complete' }]
    case 'approval-requested':
      return [{ ...call, state: approval?.isAutomatic ? 'input-complete' : 'approval-requested' }]
    case 'approval-responded':
      return [{ ...call, state: approval?.isAutomatic ? 'input-complete' : 'approval-responded' }]
    case 'output-available': {
      if (part.preliminary) return [{ ...call, state: 'input-complete' }]
      const content = JSON.stringify(part.output ?? null)
      const done = { ...call, state: 'complete' as const, output: part.output ?? null }
      return [done, { ...result, content, ...(more && { metadata: more }) }]
    }
    case 'output-error':
      return failure('error', part.errorText)
    case 'output-denied':
      return failure('denied', approval?.reason)
    default:
      return part.state satisfies never
  }
}

/** It is unknown whether a stored answer was sent, so it is sent again only on the user's request. */
function answered(approval: AiSdkApproval, { state }: AiSdkTool): ToolCallApproval {
  const { approved, reason } = approval
  const delivery = state === 'approval-responded' ? ('unknown' as const) : ('settled' as const)
  return {
    ...requestOf(approval),
    ...omitUndefined({ approved, reason, delivery: approved === undefined ? undefined : delivery }),
  }
}

export const unfinished = 'It was interrupted and may or may not have run.'

/**
 * Converts a call to the form that the AI SDK's server expects, with everything that server sent about it. `isPast`: the user has
 * sent another message since. Such a server accepts an answer only in the last message and rejects a call without a result, so a
 * call that can no longer get one is described as failed or denied. `undefined` for a call whose arguments never became complete.
 */
export function writeToolPart(
  call: ToolCallPart,
  result: ToolResultPart | undefined,
  isPast: boolean,
): AiSdkTool | undefined {
  const { dynamic, approval: automatic, ...own } = aiSdkOf(call.metadata)
  const { approval: decided, ...after } = aiSdkOf(result?.metadata)
  const { approval } = call
  const approved = call.state === 'cancelled' ? false : approval?.approved
  const asked = approvalOfToken(approval?.token)
  const base: Omit<AiSdkTool, 'state'> = {
    ...(dynamic === true ? { type: 'dynamic-tool', toolName: call.name } : { type: `tool-${call.name}` }),
    toolCallId: call.id,
    input: call.input,
    ...(call.providerExecuted && { providerExecuted: true }),
    ...own,
    ...after,
    ...(approval
      ? {
          approval: {
            // Our server always sends a descriptor. An empty one tells it that none was shown here.
            ...(/^cs1\./.test(`${asked.signature}`) && { descriptor: {} }),
            ...asked,
            id: approval.id,
            ...omitUndefined({ approved, reason: approval.reason }),
          },
        }
      : omitUndefined({ approval: readAutomatic(decided) ?? readAutomatic(automatic) })),
  }
  const failed = (errorText: string): AiSdkTool => ({ ...base, state: 'output-error', errorText })
  switch (call.state) {
    case 'awaiting-input':
    case 'input-streaming':
      return undefined
    case 'input-complete':
    case 'executing':
      return call.providerExecuted ? { ...base, state: 'input-available' } : failed(unfinished)
    case 'approval-requested':
      return { ...base, state: 'approval-requested' }
    case 'approval-responded':
      if (!isPast || call.providerExecuted || approval?.delivery === 'waiting')
        return { ...base, state: 'approval-responded' }
      return approved ? failed(unfinished) : { ...base, state: 'output-denied' }
    case 'complete':
      return { ...base, state: 'output-available', output: call.output ?? null }
    case 'error':
      return failed(call.error?.message ?? 'The tool failed.')
    case 'denied':
      return { ...base, state: 'output-denied' }
    case 'cancelled':
      if (call.error?.code === 'incomplete-arguments') return undefined
      if (approval?.problem === 'approval-interrupted') return failed(unfinished)
      return approval ? unanswered(base, approval) : failed(call.error?.message ?? unfinished)
    default:
      return call.state satisfies never
  }
}

/** Nobody approved the call: to the AI SDK this is a denial, whose reason the model gets. */
function unanswered(base: Omit<AiSdkTool, 'state'>, { id, token, problem }: ToolCallApproval): AiSdkTool {
  const reason =
    problem === 'approval-expired' ? 'The time to answer was over.' : 'Nobody answered the request.'
  return {
    ...base,
    state: 'output-denied',
    approval: { ...approvalOfToken(token), id, approved: false, reason },
  }
}

function readAutomatic(value: unknown): AiSdkApproval | undefined {
  return isRecord(value) && typeof value.id === 'string' ? { ...value, id: value.id } : undefined
}

/** The metadata of a result event. Which decision led to the result, our own server says beside it. */
export function resultMetadata(
  outcome: 'denied' | 'cancelled' | 'error' | undefined,
  own: Readonly<Record<string, unknown>>,
  code?: string,
): { metadata?: Record<string, unknown> } {
  const { decided } = getCountersignMetadata(own.resultProviderMetadata)
  const flag = (outcome ?? decided) !== undefined && {
    countersign: omitUndefined({ outcome, code, decided }),
  }
  const metadata = { ...flag, ...aiSdkMetadata(own) }
  return Object.keys(metadata).length > 0 ? { metadata } : {}
}
