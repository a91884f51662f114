import { type GateContext, isRecord, type Preview, readPreview } from '@countersign/core'
import { byteLength } from '../encoding/bytes.js'
import { canonicalJson, MAX_JSON_DEPTH } from '../encoding/canonical.js'
import { copyOf } from '../encoding/copy.js'
import { callHook, isLeft } from '../encoding/hooks.js'
import { inWords } from '../encoding/in-words.js'
import { warnOnce } from '../encoding/warn-once.js'
import type { RunScope } from '../scope/scope.js'
import type { PreviewTexts } from '../tokens/token.js'
import type { ReadyCall } from '../tools/call.js'
import { toldOf } from '../tools/tool-errors.js'
import { maskedValues, withMasks } from './mask.js'

/** A preview as computed, and as the user sees it: masked like the arguments. An approval is bound to both. */
export interface ComputedPreview {
  readonly exact: Preview
  readonly shown: Preview
  readonly texts: PreviewTexts
}

/** Bytes of a preview, as JSON. */
export const MAX_PREVIEW_BYTES = 256 * 1024

/**
 * What a call would do now, as its tool tells; undefined if the tool has no preview. One that can't be computed or shown is replaced by
 * the reason, which an approval is bound to all the same: a preview that works later is a change.
 *
 * @throws if `redact` throws: the values that it masks are not known.
 */
export async function computePreview(
  scope: RunScope,
  call: ReadyCall,
  gate: GateContext,
): Promise<ComputedPreview | undefined> {
  const { preview } = call.tool
  if (preview === undefined) return undefined
  const exact = await runPreview(scope, call, (signal) =>
    preview(copyOf(call.input) as never, { ...gate, signal }),
  )
  const redact = call.tool.redact ?? scope.settings.approvals.redact
  const masked = redact === undefined ? [] : maskedValues(call, redact, exact.text.length)
  const shown =
    masked?.length === 0
      ? exact
      : readMade(masked === undefined ? MANY_MASKS : withMasks(exact.value, masked))
  const unmasked = exact.text === shown.text ? undefined : exact.text
  return { exact: exact.value, shown: shown.value, texts: { shown: shown.text, unmasked } }
}

/** Runs a tool's `preview`, and reads what it returns, which may throw as well. One that takes too long is abandoned. */
async function runPreview(
  { settings, leave }: RunScope,
  { id, name }: ReadyCall,
  preview: (signal: AbortSignal) => unknown,
): Promise<ReadPreview> {
  const { approvals, warn } = settings
  const timeout = approvals.previewTimeout
  const over = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<Preview>((resolve) => {
    timer = setTimeout(() => {
      over.abort()
      resolve(noPreview(`${name} did not compute it within ${timeout} ms.`).value)
    }, timeout)
  })
  try {
    const made = await callHook(leave, () => Promise.race([preview(over.signal), late]))
    const read = readMade(made)
    if (read.value.kind === 'json' && isRecord(made) && made.kind !== 'json') warnOnce(warn, notOfAKind(name))
    return read
  } catch (error) {
    if (isLeft(error)) {
      over.abort()
      throw error
    }
    warn(`The preview of ${name} failed in the call ${id}.`, error)
    return noPreview(toldOf(error, `preview of ${name}`, id))
  } finally {
    clearTimeout(timer)
  }
}

const notOfAKind = (name: string) =>
  `The preview of ${name} is of no known kind, or has other members than its kind, so it is shown as JSON.`

interface ReadPreview {
  readonly value: Preview
  readonly text: string
}

/** Reads what a tool returned: JSON, and small enough. */
function readMade(made: unknown): ReadPreview {
  if (made === undefined) return noPreview('The tool gave none.')
  if (isTooLarge(made)) return noPreview(TOO_LARGE)
  const written = canonicalJson(made)
  if (!written.ok) return noPreview(`The tool gave ${inWords(made)} that is not JSON: ${written.reason}.`)
  const { canonical } = written
  if (canonical.length > MAX_PREVIEW_BYTES || byteLength(canonical) > MAX_PREVIEW_BYTES)
    return noPreview(TOO_LARGE)
  // Parsed, so that what the tool does to its object later changes nothing.
  const value = JSON.parse(canonical)
  const preview = readPreview(value)
  return preview === value ? { value, text: canonical } : readMade(preview)
}

const TOO_LARGE = `It has more than ${MAX_PREVIEW_BYTES / 1024} KiB.`

/**
 * Whether a value surely has more bytes as JSON than a preview may have: found out without writing it, which could take seconds. It is read in
 * the order in which it would be written; one that nests too deeply, or contains itself, is left to the writer, which says so.
 */
function isTooLarge(made: unknown): boolean {
  let size = 0
  const todo = [{ value: made, level: 0 }]
  for (let next = todo.pop(); next !== undefined && size <= MAX_PREVIEW_BYTES; next = todo.pop()) {
    const { value, level } = next
    if (level > MAX_JSON_DEPTH) return false
    if (typeof value === 'string') size += value.length
    size += 1
    if (Array.isArray(value)) size += value.length
    if (size > MAX_PREVIEW_BYTES || typeof value !== 'object' || value === null) continue
    if (ArrayBuffer.isView(value)) continue
    // What is undefined is not written.
    for (const key of Object.keys(value).reverse()) {
      const member: unknown = Reflect.get(value, key)
      if (member === undefined) continue
      if (!Array.isArray(value)) size += key.length
      todo.push({ value: member, level: level + 1 })
    }
  }
  return size > MAX_PREVIEW_BYTES
}

function noPreview(reason: string): ReadPreview {
  // Half a surrogate pair would make it unacceptable in an answer.
  const value = {
    kind: 'none',
    reason: reason.slice(0, MAX_REASON).replace(/\p{Surrogate}/gu, '\ufffd'),
  } as const
  return { value, text: JSON.stringify(value) }
}

/** UTF-16 units of a reason. */
const MAX_REASON = 1024

const MANY_MASKS: Preview = { kind: 'none', reason: 'The arguments have too many masked values.' }
