import type { Delivery, OfferedMandate, ToolCallApproval } from '../messages.js'
import type { Interrupt } from '../protocol/events.js'
import { asString, getCountersignMetadata, isRecord, omitUndefined, oneOf } from '../value.js'

/** An approval request as read from an event, an interrupt or a snapshot. */
export interface AskedApproval {
  readonly toolCallId: string
  readonly toolName?: string | undefined
  /** Present if the source carries the arguments. */
  readonly input?: { readonly value: unknown } | undefined
  readonly approval: ToolCallApproval
}

/** `CUSTOM approval-requested`: sent during the model's stream, as soon as the server's gate has decided. */
export function readApprovalEvent(value: unknown): AskedApproval | undefined {
  const asked = isRecord(value) ? value : {}
  return readAsked(asString(asked.toolCallId), asked, asked.approval)
}

/**
 * Reads an AG-UI interrupt that asks for approval of a tool call. Servers other than Countersign's send fewer fields;
 * the rest get defaults. An interrupt that asks for anything else is no approval request, even if it names a call.
 */
export function readApprovalInterrupt(interrupt: Interrupt): AskedApproval | undefined {
  if (!takesApproved(interrupt)) return undefined
  const own = getCountersignMetadata(interrupt.metadata)
  const more = isRecord(own.approval) ? own.approval : own
  return readAsked(interrupt.toolCallId, own, {
    id: interrupt.id,
    options: more.options,
    display: more.display,
    mandates: more.mandates,
    preview: more.preview,
    previous: more.previous,
    message: interrupt.message ?? more.message,
    expiresAt: interrupt.expiresAt ?? more.expiresAt,
    allowEdits: more.allowEdits ?? offersEdits(interrupt.responseSchema),
    token: own.token ?? more.token,
  })
}

/** AG-UI: `input_required` asks for input. A response schema, if there is one, must accept a bare yes and a bare no. */
function takesApproved({ reason, responseSchema: schema = {} }: Interrupt): boolean {
  return reason !== 'input_required' && [true, false].every((approved) => accepts(schema, { approved }))
}

/** Whether a schema surely accepts an answer, or its `approved`. One that describes properties without that asks for something else. */
function accepts(schema: unknown, value: boolean | { readonly approved: boolean }, depth = 0): boolean {
  if (typeof schema === 'boolean') return schema
  if (!isRecord(schema) || depth > 3 || unread.some((keyword) => keyword in schema)) return false
  const isFlag = typeof value === 'boolean'
  const {
    type = isFlag ? 'boolean' : 'object',
    enum: listed = [value],
    anyOf = [true],
    oneOf = [true],
  } = schema
  const { properties = {}, required = [], additionalProperties = true, const: only = value } = schema
  if (![type].flat().includes(isFlag ? 'boolean' : 'object') || only !== value) return false
  if (!Array.isArray(listed) || !listed.includes(value)) return false
  const accepting = (branches: unknown) =>
    Array.isArray(branches) ? branches.filter((branch) => accepts(branch, value, depth + 1)).length : 0
  if (accepting(anyOf) === 0 || accepting(oneOf) !== 1) return false
  if (isFlag) return true
  if (!isRecord(properties) || !Array.isArray(required)) return false
  const { approved = Object.keys(properties).length === 0 && additionalProperties } = properties
  return required.every((name) => name === 'approved') && accepts(approved, value.approved, depth + 1)
}

const unread =
  '$ref $dynamicRef $recursiveRef allOf not if patternProperties propertyNames unevaluatedProperties dependentRequired dependentSchemas dependencies minProperties maxProperties'.split(
    ' ',
  )

/** AG-UI: with `editedArgs` in the response schema, a server allows edited arguments. */
function offersEdits(schema: unknown): true | undefined {
  const properties = isRecord(schema) ? schema.properties : undefined
  return isRecord(properties) && 'editedArgs' in properties ? true : undefined
}

function readAsked(
  toolCallId: string | undefined,
  asked: Record<string, unknown>,
  question: unknown,
): AskedApproval | undefined {
  const approval = readApproval(question)
  if (toolCallId === undefined || !approval) return undefined
  const input = 'input' in asked ? { value: asked.input } : undefined
  return { toolCallId, toolName: asString(asked.toolName), input, approval }
}

/** Reads the request part of an approval. An answer in it is ignored: a stream must not approve on the user's behalf. */
export function readApproval(value: unknown): ToolCallApproval | undefined {
  if (!isRecord(value) || typeof value.id !== 'string') return undefined
  const { id, options, allowEdits, message, expiresAt, display, mandates, preview, previous, token } = value
  const offered = Array.isArray(options) ? options.filter(isOption) : []
  return omitUndefined({
    id,
    needsApproval: true as const,
    options: offered.length > 0 ? offered : (['deny', 'once'] as const),
    allowEdits: Array.isArray(allowEdits)
      ? allowEdits.filter((key) => typeof key === 'string')
      : oneOf(allowEdits, true, false),
    message: asString(message),
    expiresAt: asString(expiresAt),
    display,
    mandates: Array.isArray(mandates) ? mandates.filter(isMandate) : undefined,
    preview,
    previous,
    token: asString(token),
  })
}

function isMandate(value: unknown): value is OfferedMandate {
  return isRecord(value) && typeof value.id === 'string' && typeof value.label === 'string'
}

function isOption(value: unknown): value is ToolCallApproval['options'][number] {
  return value === 'deny' || value === 'once' || value === 'session'
}

export function readDelivery(value: unknown): Delivery | undefined {
  return oneOf(value, 'waiting', 'sent', 'settled', 'unknown')
}
