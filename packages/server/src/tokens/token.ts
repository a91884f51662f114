import { type ApprovalErrorCode, asString, CountersignError, isRecord } from '@countersign/core'
import { decodeBase64url, encodeBase64url, utf8 } from '../encoding/bytes.js'
import { canonicalJson } from '../encoding/canonical.js'
import {
  type ApprovalEdits,
  type ApprovalRecord,
  type ApprovalRef,
  type ApprovalScope,
  CLOCK_SKEW_MS,
  type Owner,
} from '../ledger/ledger.js'
import { type Keyring, keyedHash } from './keys.js'

/** Longer tokens are refused before anything is decoded, in characters. */
const MAX_TOKEN_LENGTH = 4096

/** The content of a token: the request as issued, its ledger, and what it is bound to besides its arguments. */
export interface TokenRequest
  extends Omit<
    ApprovalRecord,
    'token' | 'toolServer' | 'idempotent' | 'mandates' | 'preview' | 'previous' | 'earlier'
  > {
  readonly ledgerId: string
  /** From `bindingText`, if the request is bound to a validated value or a result of `bind`. */
  readonly binding?: string | undefined
  /** From `mandatesText`, if the request offers mandates. */
  readonly mandates?: string | undefined
  readonly preview?: PreviewTexts | undefined
  /** How often approval was requested before for this call, because its preview had changed. */
  readonly again?: number | undefined
}

/** RFC 8785 texts of a preview: as shown, and without its masks if it has any. */
export interface PreviewTexts {
  readonly shown: string
  readonly unmasked?: string | undefined
}

/** What the server knows of the call that an answer is for. */
export interface TokenExpectation
  extends ApprovalRef,
    Pick<ApprovalRecord, 'toolCallId' | 'toolName' | 'arguments'> {
  readonly ledgerId: string
}

export interface TokenClaims
  extends Pick<ApprovalRecord, 'approvalId' | 'runId' | 'scopes' | 'edits' | 'issuedAt' | 'expiresAt'> {
  readonly kid: string
  /** Compared by `bindingMatches`, when the call is about to run. */
  readonly bindingHash?: string | undefined
  readonly mandatesHash?: string | undefined
  /** Compared by `isShownPreview` with what the page showed, and by `previewHash` when the call is about to run. */
  readonly previewHash?: string | undefined
  /** How often approval was requested before for this call, because its preview had changed. */
  readonly again: number
}

/** The check that refused a token, named after the payload member that it checks, if any. */
type TokenCheck = keyof typeof REFUSALS

export type TokenVerdict =
  | { readonly ok: true; readonly claims: TokenClaims }
  | (TokenRefusal & { readonly check: Exclude<TokenCheck, 'oh' | 'exp'> })
  /** A genuine token of this thread. `oh`: another user's, and its call was not compared. `exp`: of exactly this call, but expired. */
  | (TokenRefusal & { readonly check: 'oh' | 'exp'; readonly claims: TokenClaims })

interface TokenRefusal {
  readonly ok: false
  readonly code: ApprovalErrorCode
  readonly message: string
}

/** The payload as signed. Times in seconds; `ah`, `bd`, `md`, `oh` and `pv` are keyed hashes. */
interface Payload {
  readonly ag?: number | undefined
  readonly ah: string
  readonly ap: string
  readonly aud: string
  readonly bd?: string | undefined
  readonly ed: ApprovalEdits
  readonly exp: number
  readonly iat: number
  readonly md?: string | undefined
  readonly oh: string
  readonly pv?: string | undefined
  readonly run: string
  readonly sc: readonly ApprovalScope[]
  readonly tc: string
  readonly th: string
  readonly tn: string
}

/**
 * Signs an approval request: `cs1.<kid>.<payload>.<mac>`. The same request and secret give the same token.
 * Times are rounded down to seconds.
 *
 * @throws CountersignError `invalid-argument` if an id is not well-formed Unicode, or ids and edit keys are so long that the
 * token would exceed 4 KiB.
 */
export async function signToken(request: TokenRequest, keyring: Keyring): Promise<string> {
  const keys = await keyring.current()
  const payload: Payload = {
    ag: request.again,
    ah: await keyedHash(keys.args, request.arguments),
    ap: request.approvalId,
    aud: request.ledgerId,
    bd: request.binding && (await keyedHash(keys.args, request.binding)),
    ed: request.edits,
    exp: Math.floor(request.expiresAt / 1000),
    iat: Math.floor(request.issuedAt / 1000),
    md: request.mandates && (await keyedHash(keys.args, mandatesInput(request.mandates))),
    oh: await hashOwner(keys.owner, request.owner),
    pv: request.preview && (await hashPreview(keys.args, request.preview)),
    run: request.runId,
    sc: request.scopes,
    tc: request.toolCallId,
    th: request.threadId,
    tn: request.toolName,
  }
  const written = canonicalJson(payload)
  if (!written.ok)
    throw new CountersignError('invalid-argument', `This call cannot be signed: ${written.reason}.`)
  const signed = `cs1.${keys.kid}.${encodeBase64url(utf8(written.canonical))}`
  const mac = await globalThis.crypto.subtle.sign('HMAC', keys.request, utf8(signed))
  const token = `${signed}.${encodeBase64url(new Uint8Array(mac))}`
  if (token.length > MAX_TOKEN_LENGTH) {
    const message = `The token of this call would have ${token.length} characters, at most ${MAX_TOKEN_LENGTH} are accepted: use shorter ids, tool names or allowEdits keys.`
    throw new CountersignError('invalid-argument', message, { length: token.length })
  }
  return token
}

/**
 * Whether this server issued a token for exactly this call and owner, and it is valid now. Never throws for bad input.
 * Whether the answer was already used is for the ledger to decide.
 *
 * Checks, in order, with the code of a refusal: length, segments, length of the mac (`approval-malformed`); kid
 * (`approval-not-found`); signature (`approval-tampered`); members of the payload (`approval-malformed`); approval, ledger,
 * thread, owner (`approval-not-yours`); call, tool, arguments (`approval-tampered`); issued in the future
 * (`approval-malformed`); expiry (`approval-expired`).
 */
export async function verifyToken(
  token: unknown,
  expected: TokenExpectation,
  deps: { readonly keyring: Keyring; readonly now: () => number },
): Promise<TokenVerdict> {
  if (typeof token !== 'string') return refuse('segments')
  if (token.length > MAX_TOKEN_LENGTH) return refuse('length')
  const segments = SEGMENTS.exec(token)?.groups
  if (segments === undefined) return refuse('segments')
  const { signed = '', kid = '', body = '', mac: macText = '' } = segments
  const mac = decodeBase64url(macText)
  if (mac?.length !== 32) return refuse('mac-length')
  const keys = await deps.keyring.byKid(kid)
  if (keys === undefined) return refuse('kid')
  const genuine = await globalThis.crypto.subtle.verify('HMAC', keys.request, mac, utf8(signed))
  if (!genuine) return refuse('signature')
  const payload = readJson(body)
  if (!isPayload(payload)) return refuse('payload')

  if (payload.ap !== expected.approvalId) return refuse('ap')
  if (payload.aud !== expected.ledgerId) return refuse('aud')
  if (payload.th !== expected.threadId) return refuse('th')
  const claims = readClaims(kid, payload)
  if (payload.oh !== (await hashOwner(keys.owner, expected.owner))) return refuseGenuine('oh', claims)
  if (payload.tc !== expected.toolCallId) return refuse('tc')
  if (payload.tn !== expected.toolName) return refuse('tn')
  if (payload.ah !== (await keyedHash(keys.args, expected.arguments))) return refuse('ah')
  const now = deps.now()
  if (payload.iat * 1000 > now + CLOCK_SKEW_MS) return refuse('iat')
  if (payload.exp * 1000 <= now) return refuseGenuine('exp', claims)
  return { ok: true, claims }
}

/**
 * Whether what a token was bound to, besides its arguments, is unchanged: `binding` is the current `bindingText`, undefined if
 * nothing is bound. If it does not match, the call is refused as `approval-stale`.
 */
export async function bindingMatches(
  claims: TokenClaims,
  binding: string | undefined,
  keyring: Keyring,
): Promise<boolean> {
  return isHashOf(claims, claims.bindingHash, binding, keyring)
}

/** Whether mandates, as `mandatesText`, are those that were offered. */
export async function mandatesMatch(
  claims: TokenClaims,
  mandates: string | undefined,
  keyring: Keyring,
): Promise<boolean> {
  return isHashOf(claims, claims.mandatesHash, mandates && mandatesInput(mandates), keyring)
}

/** No other text that is hashed begins like this, so no hash stands for two things. */
function mandatesInput(text: string): string {
  return `mandates ${text}`
}

async function isHashOf(
  { kid }: TokenClaims,
  hash: string | undefined,
  text: string | undefined,
  keyring: Keyring,
): Promise<boolean> {
  if (hash === undefined || text === undefined) return hash === text
  const keys = await keyring.byKid(kid)
  return keys !== undefined && (await keyedHash(keys.args, text)) === hash
}

/** The keyed hash of a preview's text. The prefix is not JSON, so it is no hash of arguments. */
function hashPreviewText(key: CryptoKey, text: string): Promise<string> {
  return keyedHash(key, `preview ${text}`)
}

/** The hash of a preview: that of what is shown and, if anything in it is masked, after a dot that of what is not. */
async function hashPreview(key: CryptoKey, { shown, unmasked }: PreviewTexts): Promise<string> {
  const hash = await hashPreviewText(key, shown)
  return unmasked === undefined ? hash : `${hash}.${await hashPreviewText(key, unmasked)}`
}

/** The same with the key of a token. */
export async function previewHash(
  { kid }: TokenClaims,
  texts: PreviewTexts,
  keyring: Keyring,
): Promise<string | undefined> {
  const keys = await keyring.byKid(kid)
  return keys && hashPreview(keys.args, texts)
}

/** Whether this is what was shown of the preview with this hash. */
export async function isShownPreview(
  { kid }: TokenClaims,
  hash: string,
  shown: string,
  keyring: Keyring,
): Promise<boolean> {
  const keys = await keyring.byKid(kid)
  return keys !== undefined && (await hashPreviewText(keys.args, shown)) === hash.split('.')[0]
}

/**
 * What a page returns to approve edited arguments: the hash of their preview, and the proof that this server has computed it for this
 * request and these arguments.
 */
export async function signEdit(
  claims: TokenClaims,
  edited: string,
  preview: PreviewTexts,
  keyring: Keyring,
): Promise<string | undefined> {
  const keys = await keyring.byKid(claims.kid)
  if (keys === undefined) return undefined
  const hash = await hashPreview(keys.args, preview)
  return `${hash}.${await keyedHash(keys.args, editText(claims, edited, hash))}`
}

/** The hash of the preview in a proof by {@link signEdit} for these arguments; undefined if it is none. */
export async function verifyEdit(
  claims: TokenClaims,
  edited: string,
  proof: unknown,
  keyring: Keyring,
): Promise<string | undefined> {
  const said = typeof proof === 'string' && proof.length < 200 ? proof : ''
  const dot = said.lastIndexOf('.')
  const [hash, mac] = [said.slice(0, Math.max(dot, 0)), said.slice(dot + 1)]
  const keys = await keyring.byKid(claims.kid)
  const bytes = decodeBase64url(mac)
  if (keys === undefined || bytes?.length !== 32) return undefined
  const text = utf8(editText(claims, edited, hash))
  return (await globalThis.crypto.subtle.verify('HMAC', keys.args, bytes, text)) ? hash : undefined
}

/** The prefix is not JSON, so it is no text of arguments. */
function editText({ approvalId }: TokenClaims, edited: string, hash: string): string {
  return `edit ${JSON.stringify([approvalId, hash, edited])}`
}

/** The approval that a token claims to be for. Not verified: use it to find, never to authorise. */
export function peekApprovalId(token: string): string | undefined {
  const body = token.length > MAX_TOKEN_LENGTH ? undefined : token.split('.')[2]
  const payload = body === undefined ? undefined : readJson(body)
  return isRecord(payload) ? asString(payload.ap) : undefined
}

/** An owner in an audit line or a token: a keyed hash. All requests without a subject share one. */
export function hashOwner(key: CryptoKey, owner: Owner): Promise<string> {
  return keyedHash(key, JSON.stringify(owner))
}

const SEGMENTS = /^(?<signed>cs1\.(?<kid>[\w-]+)\.(?<body>[\w-]+))\.(?<mac>[\w-]+)$/

/** Appended if the server no longer knows a request: its call may have run before the record, or the secret, was lost. */
export const CHECK_FIRST =
  'Whether its call has run is not known: check what it was to change before you ask again.'

const REFUSALS = {
  length: ['approval-malformed', 'The approval token is too long.'],
  segments: ['approval-malformed', 'The approval token is not of the form this server issues.'],
  'mac-length': ['approval-malformed', 'The approval token is cut off or has a malformed signature.'],
  kid: [
    'approval-not-found',
    `This server does not know the secret the approval was signed with. ${CHECK_FIRST}`,
  ],
  signature: ['approval-tampered', 'The signature of the approval token does not fit its content.'],
  payload: ['approval-malformed', 'The approval token has missing, additional or malformed members.'],
  ap: ['approval-not-yours', 'The token was issued for another approval.'],
  aud: [
    'approval-not-yours',
    `The approval was issued by another server, or before this one lost its ledger. ${CHECK_FIRST}`,
  ],
  th: ['approval-not-yours', 'The approval was issued in another thread.'],
  oh: ['approval-not-yours', 'The approval was issued to someone else.'],
  tc: ['approval-tampered', 'The approval was issued for another tool call.'],
  tn: ['approval-tampered', 'The approval was issued for another tool.'],
  ah: ['approval-tampered', 'The arguments differ from those the user was shown.'],
  iat: ['approval-malformed', 'The approval was issued in the future; check the clocks of the servers.'],
  exp: ['approval-expired', 'The time to answer has passed; ask again.'],
} as const satisfies Readonly<Record<string, readonly [ApprovalErrorCode, string]>>

function refuse(check: Exclude<TokenCheck, 'oh' | 'exp'>): TokenVerdict {
  const [code, message] = REFUSALS[check]
  return { ok: false, code, check, message }
}

function refuseGenuine(check: 'oh' | 'exp', claims: TokenClaims): TokenVerdict {
  const [code, message] = REFUSALS[check]
  return { ok: false, code, check, message, claims }
}

function readClaims(kid: string, payload: Payload): TokenClaims {
  return {
    kid,
    approvalId: payload.ap,
    runId: payload.run,
    scopes: payload.sc,
    edits: payload.ed,
    issuedAt: payload.iat * 1000,
    expiresAt: payload.exp * 1000,
    bindingHash: payload.bd,
    mandatesHash: payload.md,
    previewHash: payload.pv,
    again: payload.ag ?? 0,
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isTime = (value: unknown): value is number => Number.isSafeInteger(value)
const isScopes = (value: unknown): value is ApprovalScope[] =>
  Array.isArray(value) && value.every((scope) => scope === 'once' || scope === 'session')
const isEdits = (value: unknown): value is ApprovalEdits =>
  typeof value === 'boolean' || (Array.isArray(value) && value.every(isText))

const MEMBERS: { readonly [Name in keyof Payload]-?: (value: unknown) => boolean } = {
  ag: (value) => value === undefined || isTime(value),
  ah: isText,
  ap: isText,
  aud: isText,
  bd: (value) => value === undefined || isText(value),
  ed: isEdits,
  exp: isTime,
  iat: isTime,
  md: (value) => value === undefined || isText(value),
  oh: isText,
  pv: (value) => value === undefined || isText(value),
  run: isText,
  sc: isScopes,
  tc: isText,
  th: isText,
  tn: isText,
}
const MEMBER_CHECKS = new Map(Object.entries(MEMBERS))

function isPayload(value: unknown): value is Payload {
  if (!isRecord(value)) return false
  const members = new Map(Object.entries(value))
  const isKnown = (name: string) => MEMBER_CHECKS.has(name)
  return (
    [...members.keys()].every(isKnown) && [...MEMBER_CHECKS].every(([name, fits]) => fits(members.get(name)))
  )
}

function readJson(body: string): unknown {
  const bytes = decodeBase64url(body)
  if (bytes === undefined) return undefined
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return undefined
  }
}
