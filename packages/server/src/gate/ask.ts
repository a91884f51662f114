import {
  type ApprovalOption,
  type GateContext,
  type Interrupt,
  type JsonSchema,
  omitUndefined,
  type Preview,
} from '@countersign/core'
import { byteLength } from '../encoding/bytes.js'
import { bindingText, canonicalJson } from '../encoding/canonical.js'
import { copyOf } from '../encoding/copy.js'
import { callHook, isLeft } from '../encoding/hooks.js'
import { ignoreRejection, inWords } from '../encoding/in-words.js'
import { plainOf } from '../encoding/plain.js'
import { warnOnce } from '../encoding/warn-once.js'
import { type ApprovalRecord, type ApprovalScope, NEVER, type ShownTerms } from '../ledger/ledger.js'
import { shownOffer } from '../mandates/offer.js'
import { failed, type ToolFailure } from '../outcome.js'
import { audit } from '../scope/audit.js'
import type { ApprovalRequest } from '../scope/confirm.js'
import { isOfRun, type RunScope } from '../scope/scope.js'
import { signToken } from '../tokens/token.js'
import type { ReadyCall } from '../tools/call.js'
import { boundName } from '../tools/provider-tool.js'
import type { AgentTool } from '../tools/toolkit.js'
import { termsOf } from './gate.js'
import { mandatesText, offerMandates } from './mandates.js'
import { redacted } from './mask.js'
import { type ComputedPreview, computePreview, MAX_PREVIEW_BYTES } from './preview.js'
import { toolDigest } from './tool-digest.js'

export type { ApprovalRequest } from '../scope/confirm.js'

/** The terms that a request and its token share. */
export type AskedTerms = Pick<
  ApprovalRecord,
  'approvalId' | 'scopes' | 'edits' | 'expiresAt' | 'token' | 'shown' | 'mandates' | 'preview' | 'previous'
>

/** Terms set by a provider, a tool or an earlier request, in place of those of the gate and the tool's options. */
export interface OwnTerms {
  /** The provider's own id, for a call that the provider runs. */
  readonly approvalId?: string | undefined
  readonly scopes?: readonly ApprovalScope[] | undefined
  readonly shown?: ShownTerms | undefined
  /** Approval is requested again, because the preview has changed. */
  readonly again?: {
    /** How often, with this time. */
    readonly count: number
    /** The ids of the earlier requests for this call, as far as the ledger has them. */
    readonly earlier: readonly string[]
    readonly previous: Preview | undefined
    /** The preview now, if it was computed already. */
    readonly preview: ComputedPreview | undefined
  }
}

export type Asking =
  | { readonly ok: true; readonly request: ApprovalRequest }
  | { readonly ok: false; readonly failure: ToolFailure }

/**
 * Creates an approval request for a call **that the model made in this run**, or one whose verified token has just been claimed (`own.again`:
 * the token signs exactly these arguments), and no other: nothing from a request body is ever signed. The ledger stores it before the user sees it. If the request fails, the result is a failure, never a call that runs.
 */
export async function requestApproval(
  scope: RunScope,
  call: ReadyCall,
  gate: GateContext,
  own: OwnTerms = {},
): Promise<Asking> {
  const { approvals, warn } = scope.settings
  if (!isOfRun(scope, call)) {
    warn(`${call.name} needs approval, but only prepareStep has it: add it to the agent's tools.`)
    return { ok: false, failure: failed('denied', `${call.name} needs approval, which it can't ask for.`) }
  }
  // A function of the tool, such as `message`, `redact` or `bind`.
  let code: 'tool-failed' | 'ledger-unavailable' = 'tool-failed'
  try {
    const record = await signRecord(scope, call, gate, own)
    const request = describeRequest(scope, call, record)
    code = 'ledger-unavailable'
    const issued = await approvals.ledger.issue(record)
    if (issued.status === 'issued' || issued.status === 'unchanged') {
      await auditRequest(scope, call, record, request)
      return { ok: true, request }
    }
    warn(`The ledger did not take the request for ${call.name}: ${issued.status}.`)
  } catch (error) {
    if (isLeft(error)) throw error
    warn(`No approval could be requested for ${call.name}.`, error)
  }
  const reason = `${call.name} needs approval, but it could not be requested.`
  return { ok: false, failure: failed('execution_error', reason, code) }
}

async function auditRequest(
  scope: RunScope,
  call: ReadyCall,
  { approvalId, toolCallId, toolName, shown }: ApprovalRecord,
  { approval, ...request }: ApprovalRequest,
): Promise<void> {
  const { token: _, ...terms } = approval
  const written = canonicalJson({ ...request, approval: terms })
  // Values shown by a schema or by the tool itself are not masked, and the audit trail must not contain arguments.
  const isMasked = redactOf(scope, call) !== undefined && shown?.display === undefined
  await audit(scope, {
    event: 'issued',
    ...{ approvalId, toolCallId, toolName },
    arguments: call.canonical,
    ...(isMasked && terms.display !== undefined && { view: terms.display }),
    ...(written.ok && { shown: written.canonical }),
  })
}

function redactOf({ settings }: RunScope, { tool }: ReadyCall): ((input: never) => unknown) | undefined {
  return tool.redact ?? settings.approvals.redact
}

async function signRecord(
  scope: RunScope,
  call: ReadyCall,
  gate: GateContext,
  own: OwnTerms,
): Promise<ApprovalRecord> {
  const { approvals, now } = scope.settings
  const { tool } = call
  const issuedAt = now()
  const expiresIn = tool.expiresIn ?? approvals.expiresIn
  const scopes = own.scopes ?? termsOf(tool).scopes
  const session = scope.owner !== null && scopes.includes('session') ? await digestOf(scope, tool) : undefined
  const question = {
    owner: scope.owner,
    threadId: scope.threadId,
    approvalId: own.approvalId ?? approvals.generateId(),
    runId: scope.runId,
    toolCallId: call.id,
    toolName: call.name,
    ...(tool.toolServer !== undefined && { toolServer: tool.toolServer }),
    arguments: call.canonical,
    // Without a digest, a session approval would count for no version of the tool.
    scopes: session === '' ? scopes.filter((option) => option !== 'session') : scopes,
    edits: tool.allowEdits ?? false,
    issuedAt,
    // Whole seconds, as in the token: a request that is sent again must be identical.
    expiresAt: expiresIn === 'never' ? NEVER : (Math.floor(issuedAt / 1000) + Math.ceil(expiresIn)) * 1000,
  }
  const binding = await bindingOf(scope, call, gate)
  const mandates = await offerMandates(scope, call, gate)
  const preview = own.again?.preview ?? (await computePreview(scope, call, gate))
  const providerExecuted = tool.location === 'provider'
  const toolName = boundName(call.name, providerExecuted)
  const token = await signToken(
    {
      ...question,
      ...{ toolName, ledgerId: approvals.ledger.id, binding, mandates: mandatesText(mandates) },
      ...{ preview: preview?.texts, again: own.again?.count },
    },
    approvals.keyring,
  )
  return {
    ...question,
    idempotent: tool.idempotent ?? false,
    ...(session && { tool: session }),
    ...(providerExecuted && { providerExecuted }),
    ...(mandates !== undefined && { mandates }),
    ...(own.shown !== undefined && { shown: { ...shownTerms(scope, call), ...own.shown } }),
    ...(preview !== undefined && { preview: preview.shown, ...previousOf(preview, own) }),
    ...(own.again !== undefined && { earlier: own.again.earlier }),
    token,
  }
}

/** The digest of a tool, for a session approval; empty if there is none. */
function digestOf({ settings }: RunScope, tool: ReadyCall['tool']): Promise<string> {
  return toolDigest(tool).catch((error: unknown) => {
    const warn = (message: string) => settings.warn(message, error)
    warnOnce(warn, `No session approval of ${tool.name} is offered: its schema can't be written as JSON.`)
    return ''
  })
}

/** The preview of the request before this one, if both together are no larger than one may be. */
function previousOf({ texts }: ComputedPreview, { again }: OwnTerms): Pick<ApprovalRecord, 'previous'> {
  if (again?.previous === undefined) return {}
  const isSmall = byteLength(texts.shown) + byteLength(JSON.stringify(again.previous)) <= MAX_PREVIEW_BYTES
  return { previous: isSmall ? again.previous : TOO_LARGE }
}

const TOO_LARGE: Preview = { kind: 'none', reason: 'It is too large to be shown again.' }

/**
 * What a request is bound to besides its arguments: the validated value if the schema changed it, and the tool's `bind`. Undefined
 * if neither applies.
 *
 * @throws whatever `bind` throws, or an Error if it does not return JSON.
 */
export async function bindingOf(
  { leave }: RunScope,
  call: ReadyCall,
  gate: GateContext,
): Promise<string | undefined> {
  const transformed = otherThanAsked(call, call.input)
  const { bind } = call.tool
  if (transformed === undefined && bind === undefined) return undefined
  const bound = bind && ((await callHook(leave, () => bind(copyOf(call.input) as never, gate))) ?? null)
  const written = bindingText(transformed === undefined ? call.args : transformed.value, bound ?? null)
  if (!written.ok) throw new Error(`bind of ${call.name} must answer JSON: ${written.reason}`)
  return written.canonical
}

/**
 * What the schema or the mask returned, as JSON, if it differs from the model's arguments.
 *
 * @throws Error if it cannot be converted to JSON: a value that cannot be shown and bound must not be approved.
 */
function otherThanAsked(call: ReadyCall, made: unknown): { readonly value: unknown } | undefined {
  const value = plainOf(made) ?? null
  const written = canonicalJson(value)
  if (!written.ok)
    throw new Error(`What the arguments of ${call.name} become cannot be shown: ${written.reason}.`)
  return written.canonical === call.canonical ? undefined : { value }
}

/** Describes a request for the user. The same terms give the same request, also when it is sent again. */
export function describeRequest(scope: RunScope, call: ReadyCall, terms: AskedTerms): ApprovalRequest {
  return requestOf(scope, call, terms, terms.shown ?? shownTerms(scope, call))
}

/** The same for a call that its tool can't describe. */
export function requestOf(
  scope: RunScope,
  call: Pick<ReadyCall, 'id' | 'name' | 'args'>,
  terms: AskedTerms,
  { message, display }: ShownTerms,
): ApprovalRequest {
  return {
    toolCallId: call.id,
    toolName: call.name,
    input: call.args,
    approval: {
      id: terms.approvalId,
      needsApproval: true,
      options: optionsOf(scope, terms.scopes),
      ...omitUndefined({
        ...{ message, display, preview: terms.preview, previous: terms.previous },
        allowEdits: terms.edits || undefined,
        expiresAt: terms.expiresAt < NEVER ? new Date(terms.expiresAt).toISOString() : undefined,
        mandates: terms.mandates?.offers.map(shownOffer),
      }),
      token: terms.token,
    },
  }
}

/** The tool's message for a call, and the arguments to show if they differ. */
function shownTerms(scope: RunScope, call: ReadyCall): ShownTerms {
  const redact = redactOf(scope, call)
  return {
    message: messageOf(scope, call),
    display: redact === undefined ? otherThanAsked(call, call.input)?.value : masked(call, redact),
  }
}

/** The tool's message; undefined if it has none, or returns something that is not a string. */
function messageOf({ settings }: RunScope, { tool, name, input }: ReadyCall): string | undefined {
  const { message } = termsOf(tool)
  if (typeof message !== 'function') return message
  const said: unknown = message(copyOf(input) as never)
  if (said === undefined || typeof said === 'string') return said
  ignoreRejection(said)
  settings.warn(
    `message of ${name} must return text, not ${inWords(said)}; approval is requested without it.`,
  )
  return undefined
}

/**
 * The masked arguments; undefined if nothing is masked. A mask that returns undefined hides them all.
 *
 * @throws if the mask throws, or returns a promise or a value without JSON: then approval is not requested, rather than shown unmasked.
 */
function masked(call: ReadyCall, redact: (input: never) => unknown): unknown {
  return otherThanAsked(call, JSON.parse(JSON.stringify(redacted(call, redact)) ?? 'null'))?.value
}

/** The user's options. Without a subject a session has no owner, so only `once` is offered. */
export function optionsOf(
  { owner }: Pick<RunScope, 'owner'>,
  scopes: readonly ApprovalScope[],
): readonly ApprovalOption[] {
  const shown = owner === null ? scopes.filter((option) => option !== 'session') : scopes
  return ['deny', ...(shown.length === 0 ? (['once'] as const) : shown)]
}

export function interruptOf(
  scope: RunScope,
  request: ApprovalRequest,
  tool: AgentTool | undefined,
): Interrupt {
  const { id, message, expiresAt } = request.approval
  return {
    id,
    reason: 'tool_call',
    toolCallId: request.toolCallId,
    message: message ?? `${tool?.name ?? request.toolName} needs your approval.`,
    responseSchema: responseSchema(request),
    // An expired interrupt blocks the thread of a 0.x client for good. The token expires anyway.
    ...(scope.isV1Peer && expiresAt !== undefined && { expiresAt }),
    metadata: { countersign: { ...request } },
  }
}

/** Only keywords that deployed clients understand. `editedArgs` only if edits are allowed: that is how AG-UI signals them. */
function responseSchema({ approval }: ApprovalRequest): Record<string, unknown> {
  const properties: Record<string, JsonSchema> = {
    approved: { type: 'boolean', description: 'Whether the call may run.' },
    reason: { type: 'string', description: 'The reason that the user gave.' },
  }
  if (approval.options.includes('session')) {
    properties.scope = { type: 'string', description: 'once, or session for further calls of this tool.' }
  }
  if (approval.mandates !== undefined) {
    const ids = approval.mandates.map(({ id }) => id).join(', ')
    properties.mandate = { type: 'string', description: `A standing approval or denial: ${ids}.` }
  }
  if (approval.allowEdits !== undefined) {
    const which = approval.allowEdits === true ? 'any key' : `only ${approval.allowEdits.join(', ')}`
    properties.editedArgs = { type: 'object', description: `All arguments, edited (${which}).` }
  }
  return { type: 'object', properties, required: ['approved'] }
}
