import type { ResumeEntry } from '@countersign/core'

/** What the application knows of the request that brought an answer. */
export type AnswerContext = Readonly<Record<string, unknown>>

/** What became of an answer on its way into an open run. */
export type Delivery =
  /** The run has it and acts on it. */
  | { readonly status: 'taken' }
  /** It has not; the answer is as good as before and can go out with a request of its own. */
  | { readonly status: 'refused'; readonly code: DeliveryCode; readonly message: string }

export type DeliveryCode = 'run-ended' | 'approval-conflict' | 'too-many-answers' | 'not-asked'

/** Gets an answer and who gave it, or nothing when no answer will come. */
export type Take = (entry: ResumeEntry | undefined, context?: AnswerContext) => void

/** Where a run that is open takes its answers from. */
export interface AnswerSource {
  /**
   * Calls `taken` once: with the answer to `approvalId` as soon as it is there, or without one when no more will come. The function
   * that comes back stops the waiting.
   */
  take(approvalId: string, taken: Take): () => void
  /**
   * The answer that was taken is refused, and its question stays open, but nothing waits for another answer. Whatever comes now for
   * `approvalId`, be it the same again, is refused, so that its sender sends it with a request of its own.
   */
  refuse?(approvalId: string): void
  /** No more is taken: what waits for an answer gets none, and answers that nobody took are refused. */
  close(): void
}

/**
 * The answers for one run. Whoever hears the person puts them in, in any order and at any time, also before the question was asked;
 * each waits until the run takes it.
 */
export interface AnswerQueue extends AnswerSource {
  /**
   * Resolves once the run has taken the answer, or certainly will not. The first answer to a question wins: the same again is `taken`,
   * another is refused with `approval-conflict`, and so is each once the run has refused the first and left the question open. Never rejects.
   *
   * @param context Who answers, for `approvals.confirm`. Default `{}`: the run's own context does not stand in for it.
   */
  put(entry: ResumeEntry, context?: AnswerContext): Promise<Delivery>
}

export interface AnswerQueueOptions {
  /**
   * Milliseconds that an answer is kept whose question was not asked yet; then it is refused with `not-asked`, and can be put in again.
   * Default: until the queue is closed.
   */
  readonly keepEarly?: number | undefined
  /**
   * Called before an answer is kept for a question that was not asked yet, with its characters as JSON. It answers the function that
   * gives the room back, or nothing where there is no room. Default: the queue's own limits alone, 256 answers of 4 Mi characters
   * together.
   */
  readonly reserve?: ((size: number) => (() => void) | undefined) | undefined
}

/** How many answers may wait for questions that were not asked yet. */
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
 * @example
 * const answers = answerQueue()
 * for await (const event of agent.run(input, { answers })) show(event)      // stays open while the person decides
 * // and meanwhile, elsewhere
 * await answers.put({ interruptId: approval.id, status: 'resolved', payload: { approved: true } })
 */
export function answerQueue({ keepEarly, reserve = () => () => {} }: AnswerQueueOptions = {}): AnswerQueue {
  /** Of each id, whoever waits for it. An answer goes to the last that came; nobody is forgotten. */
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
    if (first !== undefined) return Promise.resolve(repeated(first, entry))
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
  'The run has not asked this question. Send the answer again once it has, or with the next request.',
)
const TOO_MANY = refusal('too-many-answers', 'Too many answers wait for questions that were not asked.')

function refusal(code: DeliveryCode, message: string): Delivery {
  return { status: 'refused', code, message }
}

function repeated(first: string, second: ResumeEntry): Delivery {
  return first === fingerprint(says(second)) ? TAKEN : CONFLICT
}

/**
 * What is kept of an answer that was taken: a run of many questions must not hold each of their answers. Two answers that share one are of
 * one person, who would deceive nobody else.
 */
function fingerprint(text: string): string {
  if (text.length <= 256) return text
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  return `${text.length}:${hash}`
}

/** What an answer says, without what came along with it. */
function says({ status, payload }: ResumeEntry): string {
  return JSON.stringify([status, payload])
}

/** Puts in several answers that came together. One that was not taken speaks for all of them. */
export async function putAll(
  queue: AnswerQueue,
  entries: readonly ResumeEntry[],
  context?: AnswerContext,
): Promise<Delivery> {
  const deliveries = await Promise.all(entries.map((entry) => queue.put(entry, context)))
  return deliveries.find(({ status }) => status === 'refused') ?? TAKEN
}

/** What is said where no run of that name is open. */
export const runEnded: Delivery = ENDED
