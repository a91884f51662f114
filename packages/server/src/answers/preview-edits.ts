import { CountersignError, type EditedPreview, type ToolCall } from '@countersign/core'
import { askPolicy } from '../gate/gate.js'
import { computePreview } from '../gate/preview.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import { signEdit } from '../tokens/token.js'
import { lookUp } from './look-up.js'
import type { Refusal } from './outcome.js'
import { readApproved } from './prepare.js'
import { NO_RECORDS } from './records.js'
import { NO_SUCH_REQUEST, verifyAnswers } from './verify.js'

/** Edited arguments whose preview a page wants to show before it offers to approve them. Nothing about it is verified yet. */
export interface EditsToPreview {
  readonly threadId: string
  readonly approvalId: string
  /** The request's token, if the page has it. */
  readonly token?: unknown
  /** The call as the model made it. */
  readonly call: { readonly id: string; readonly name: string; readonly arguments: string }
  /** All arguments, edited. */
  readonly input: unknown
}

/**
 * The preview of edited arguments, and the proof that this server has computed it for them. They pass the checks of an approval that
 * carries them, but nothing is settled.
 *
 * @throws CountersignError with the code of a refusal; `data.status` is the HTTP status.
 */
export async function previewEdits(
  scope: RunScope,
  { approvalId, token, call: { id, name, arguments: text }, input }: EditsToPreview,
): Promise<EditedPreview> {
  const call: ToolCall = { id, type: 'function', function: { name, arguments: text } }
  const message = { id: '', role: 'assistant' as const, toolCalls: [call] }
  const answer = {
    ...({ via: 'live', status: 'resolved', payload: { approved: true, editedArgs: input } } as const),
    ...{ approvalId, token, context: scope.context },
    site: { call, message, index: 0, superseded: false },
  }
  const { verdicts, refusals } = await verifyAnswers(scope, [answer], NO_RECORDS)
  const [verdict] = verdicts
  if (verdict === undefined) throw refused(refusals[0] ?? NOT_KNOWN)
  const entry = await lookUp(scope, verdict.ref)
  if (entry === 'unavailable') throw refused({ ...NOT_KNOWN, code: 'ledger-unavailable' })
  if (entry !== undefined && entry.state.phase !== 'issued')
    throw refused({ code: 'approval-conflict', message: 'This request was answered before.' })
  const gate = gateContext(scope, id, [])
  const approved = await readApproved(scope, verdict, gate)
  if ('refusal' in approved) throw refused(approved.refusal)
  const policy = await askPolicy(scope, approved.call, gate)
  if (policy.decision === 'block')
    throw refused({
      code: 'approval-edit-invalid',
      message: policy.reason ?? 'These arguments are not allowed.',
    })
  const preview = await computePreview(scope, approved.call, gate)
  const { keyring } = scope.settings.approvals
  const proof = preview && (await signEdit(verdict.claims, approved.call.canonical, preview.texts, keyring))
  if (preview === undefined || proof === undefined)
    throw refused({ code: 'approval-edit-invalid', message: `The tool ${name} has no preview.` })
  return { preview: preview.shown, proof }
}

const NOT_KNOWN = { code: 'approval-not-found', message: NO_SUCH_REQUEST } as const

function refused({ code, message }: Pick<Refusal, 'code' | 'message'>): CountersignError {
  return new CountersignError(code, message, { status: code === 'ledger-unavailable' ? 503 : 409 })
}
