import type { ResumeEntry } from '@countersign/core'
import { checkOptions, method, milliseconds } from '../encoding/check-options.js'

/** What the application knows about the request that brought an answer. */
export type AnswerContext = Readonly<Record<string, unknown>>

/** What happened to an answer sent to an open run. */
export type Delivery =
  /** The run has it and acts on it. */
  | { readonly status: 'taken' }
  /** The run does not have it; the answer is still valid and can be sent with a request of its own. */
  | { readonly status: 'refused'; readonly code: DeliveryCode; readonly message: string }

export type DeliveryCode = 'run-ended' | 'approval-conflict' | 'too-many-answers' | 'not-asked'

/** Gets an answer and its context, or nothing if no answer will come. */
export type Take = (entry: ResumeEntry | undefined, context?: AnswerContext) => void

/** Where an open run takes its answers from. */
export interface AnswerSource {
  /**
   * Calls `taken` once: with the answer to `approvalId` as soon as it is there, or without one when no more will come. The returned
   * function ends the wait.
   */
  take(approvalId: string, taken: Take): () => void
  /**
   * The taken answer is refused, and its request stays open, but nothing waits for another answer. Any further answer for
   * `approvalId`, even the same one, is refused, so that its sender sends it with a request of its own.
   */
  refuse?(approvalId: string): void
  /** Takes no more: whatever waits for an answer gets none, and answers that nobody took are refused. */
  close(): void
}

/**
 * The answers for one run. Put them in, in any order and at any time, even before approval is requested;
 * each waits until the run takes it.
 */
export interface AnswerQueue extends AnswerSource {
  /**
   * Resolves once the run has taken the answer, or certainly will not. The first answer to a request wins: a repeat is `taken`,
   * another is refused with `approval-conflict`, and so is any once the run has refused the first and left the request open. Never rejects.
   *
   * @param context Who answers, for `approvals.confirm`. Default `{}`: the run's own context is not used instead.
   */
  put(entry: ResumeEntry, context?: AnswerContext): Promise<Delivery>
}

export interface AnswerQueueOptions {
  /**
   * Milliseconds that an answer is kept before its approval is requested; then it is refused with `not-asked`, and can be put in again.
   * Default: until the queue is closed.
   */
  readonly keepEarly?: number | undefined
  /**
   * Called before an answer is kept whose approval was not requested yet, with its size as JSON, in characters. Returns the function
   * that releases the room, or undefined if there is none. Default: only the queue's own limits, 256 answers of 4 Mi characters
   * together.
   */
  readonly reserve?: ((size: number) => (() => void) | undefined) | undefined
}

/** How many answers may wait for approval requests that were not made yet. */
const MAX_EARLY = 256
/** How many characters they may have together, as JSON. */
const MAX_EARLY_SIZE = 4 * 1024 * 1024

interface Early {
  readonly entry: ResumeEntry
  readonly context: AnswerContext | undefined
  readonly delivery: Promise<Delivery>
  settle(delivery: Delivery): void
}

/**
 * A queue for one run, which closes it at its end.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example
 * const answers = answerQueue()
 * for await (const event of agent.run(input, { answers })) show(event)      // stays open while the user decides
 * // and meanwhile, elsewhere
 * await answers.put({ interruptId: approval.id, status: 'resolved', payload: { approved: true } })
 */
export function answerQueue(options: AnswerQueueOptions = {}): AnswerQueue {
  checkOptions('answerQueue', options, { keepEarly: milliseconds, reserve: method })
  const { keepEarly, reserve = () => () => {} } = options
  /** The waiting callbacks by id. The latest gets the answer; the others keep waiting. */
  const waiting = new Map<string, Take[]>()
  const early = new Map<string, Early>()
  const taken = new Map<string, string>()
  const refused = new Set<string>()
  let earlySize = 0
  let open = true

  function put(entry: ResumeEntry, context?: AnswerContext): Promise<Delivery> {
    const { interruptId } = entry
    if (!open) return Promise.resolve(ENDED)
    if (refused.has(interruptId)) return Promise.resolve(NOT_WAITED_FOR)
    const first = taken.get(interruptId)
    if (first !== undefined) return Promise.resolve(first === fingerprint(says(entry)) ? TAKEN : CONFLICT)
    const take = waiting.get(interruptId)?.at(-1)
    if (take !== undefined) {
      give(take, entry, context)
      return Promise.resolve(TAKEN)
    }
    const kept = early.get(interruptId)
    if (kept !== undefined)
      return says(kept.entry) === says(entry) ? kept.delivery : Promise.resolve(CONFLICT)
    return keep(entry, context)
  }

  function keep(entry: ResumeEntry, context: AnswerContext | undefined): Promise<Delivery> {
    const size = JSON.stringify(entry).length
    const fits = early.size < MAX_EARLY && earlySize + size <= MAX_EARLY_SIZE
    const giveBack = fits ? reserve(size) : undefined
    if (giveBack === undefined) return Promise.resolve(TOO_MANY)
    let timer: ReturnType<typeof setTimeout> | undefined
    let resolve: (delivery: Delivery) => void = () => {}
    const delivery = new Promise<Delivery>((done) => {
      resolve = done
    })
    const settle = (delivery: Delivery) => {
      clearTimeout(timer)
      if (early.delete(entry.interruptId)) earlySize -= size
      giveBack()
      resolve(delivery)
    }
    if (keepEarly !== undefined) timer = setTimeout(settle, keepEarly, NOT_ASKED)
    earlySize += size
    early.set(entry.interruptId, { entry, context, delivery, settle })
    return delivery
  }

  function give(take: Take, entry: ResumeEntry, context: AnswerContext | undefined): void {
    forget(entry.interruptId, take)
    taken.set(entry.interruptId, fingerprint(says(entry)))
    take(entry, context)
  }

  function forget(id: string, take: Take): void {
    const others = waiting.get(id)?.filter((one) => one !== take) ?? []
    if (others.length === 0) waiting.delete(id)
    else waiting.set(id, others)
  }

  return {
    put,
    take(approvalId, take) {
      if (!open) {
        take(undefined)
        return () => {}
      }
      taken.delete(approvalId)
      refused.delete(approvalId)
      const kept = early.get(approvalId)
      if (kept !== undefined) {
        kept.settle(TAKEN)
        give(take, kept.entry, kept.context)
        return () => {}
      }
      waiting.set(approvalId, [...(waiting.get(approvalId) ?? []), take])
      return () => forget(approvalId, take)
    },
    refuse: (approvalId) => void refused.add(approvalId),
    close() {
      if (!open) return
      open = false
      const [unanswered, untaken] = [[...waiting.values()].flat(), [...early.values()]]
      waiting.clear()
      for (const take of unanswered) take(undefined)
      for (const { settle } of untaken) settle(ENDED)
    },
  }
}

const TAKEN: Delivery = { status: 'taken' }
const ENDED = refusal('run-ended', 'No run that takes the answer is open.')
const CONFLICT = refusal('approval-conflict', 'This request was answered before, and otherwise.')
const NOT_WAITED_FOR = refusal(
  'approval-conflict',
  'An answer to this request was refused before. Send this one with the next request.',
)
const NOT_ASKED = refusal(
  'not-asked',
  'The run has no such request yet. Send the answer again once it has, or with the next request.',
)
const TOO_MANY = refusal('too-many-answers', 'Too many answers wait for requests that were not made.')

function refusal(code: DeliveryCode, message: string): Delivery {
  return { status: 'refused', code, message }
}

/**
 * What is kept of a taken answer: a run with many requests must not hold every answer. If two answers share a fingerprint, both are
 * the same user's, who would deceive nobody else.
 */
function fingerprint(text: string): string {
  if (text.length <= 256) return text
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  return `${text.length}:${hash}`
}

function says({ status, payload }: ResumeEntry): string {
  return JSON.stringify([status, payload])
}

/** Puts in several answers that arrived together. If one is refused, all are reported as refused. */
export async function putAll(
  queue: AnswerQueue,
  entries: readonly ResumeEntry[],
  context?: AnswerContext,
): Promise<Delivery> {
  const deliveries = await Promise.all(entries.map((entry) => queue.put(entry, context)))
  return deliveries.find(({ status }) => status === 'refused') ?? TAKEN
}

/** The delivery if no such run is open. */
export const runEnded: Delivery = ENDED

/** The delivery if too many of a user's answers wait. */
export const tooManyAnswers: Delivery = TOO_MANY
