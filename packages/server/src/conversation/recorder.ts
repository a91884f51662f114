import type { AGUIEvent, Message, TokenUsage } from '@countersign/core'
import type { AgentSettings } from '../scope/settings.js'
import { endingOf, type RunEnding } from './ending.js'
import { RecordedBranch } from './recorded-branch.js'
import { isFull, isLost, type ThreadWriter } from './thread-writer.js'

/** Milliseconds between two saves of text that is still arriving. */
const SAVE_EVERY = 1000

/** What a run finds in its thread. */
interface Found {
  /** The conversation, with what the request has added. */
  readonly messages: readonly Message[]
  /** This run only ends one whose process died, so what it stores is unfinished in any case. */
  readonly isRecovery: boolean
  /** What is to be shown again if the run says nothing: the end of the version that it was to replace. */
  readonly replaced: string | undefined
  /** What earlier runs with the same id have used. */
  readonly usedBefore: readonly TokenUsage[]
}

/** Of more calls at once, this many get room for the largest result. */
const MOST_LARGEST = 16
/** What a result takes besides its content, or one that only says why its call has failed. */
const SMALL_RESULT = 32 * 1024

export class Recorder {
  readonly #branch: RecordedBranch
  #ending: RunEnding | undefined
  readonly #lost = new AbortController()
  readonly #renewal: ReturnType<typeof setInterval>
  #saving: Promise<void> = Promise.resolve()
  readonly usage: TokenUsage[] = []
  /** How much of it is stored. */
  #stored = 0
  #calls = 0
  /** How many of these calls were stored with room for their results: what is written while they run may use it. */
  #checked = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed: Promise<void> | undefined

  constructor(
    private readonly settings: AgentSettings,
    private readonly writer: ThreadWriter,
    private readonly found: Found,
  ) {
    const { leaseMs } = settings.approvals
    this.#branch = new RecordedBranch(found.messages)
    this.#renewal = setInterval(() => this.#renew(leaseMs), leaseMs / 3)
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  take(event: AGUIEvent): Promise<void> | undefined {
    if (this.#closed) return undefined
    this.#ending ??= endingOf(event)
    this.#branch.dispatch(event)
    if (event.type === 'TOOL_CALL_END') this.#calls++
    if (event.type === 'TOOL_CALL_END' || event.type === 'TOOL_CALL_RESULT')
      return this.#save().then(() => this.lost.throwIfAborted())
    this.#timer ??= setTimeout(() => void this.#save(), SAVE_EVERY)
    return undefined
  }

  keepRoom(): Promise<void> {
    const kept = this.#saving.then(() => this.writer.append(this.#spare()))
    this.#saving = kept.catch(() => {})
    return kept
  }

  close(): Promise<void> {
    this.#closed ??= this.#end()
    return this.#closed
  }

  async #end(): Promise<void> {
    await this.#save(true)
    clearInterval(this.#renewal)
    clearTimeout(this.#timer)
    if (!this.lost.aborted) return
    // What the store did not take now, the next run or `recover` stores: they find the thread by its hold, which lapses at once.
    const { reason } = this.lost
    const isOver = isFull(reason) || isLost(reason)
    await (isOver ? this.writer.release() : this.writer.renew(1)).catch((error: unknown) =>
      this.settings.warn('A thread was not released.', error),
    )
    throw this.lost.reason
  }

  /** Saves one after the other. A failure stops the run: nothing may happen that is not stored. */
  #save(release = false): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#saving = this.#saving
      .then(() => this.#store(release))
      .catch(async (error: unknown) => {
        // The room is kept for results: data parts that take it are not stored. Then the run goes on until it has them all.
        // A result that comes meanwhile is still to be stored.
        const { openCalls } = this.#branch
        const failed = isFull(error) ? await this.#store(release, true).catch(() => error) : error
        if (failed || release || openCalls === 0) this.#lost.abort(error)
      })
    return this.#saving
  }

  async #store(release: boolean, withoutParts = false): Promise<void> {
    if (this.lost.aborted) return
    const isUnfinished = !release || this.found.isRecovery || this.#ending === 'failed'
    const calls = this.#calls
    const { messages, head, commit } = this.#branch.change({
      withoutParts,
      isUnfinished,
      hasFinished: release && this.#ending === 'finished',
    })
    const back = release && head === this.found.messages.at(-1)?.id ? this.found.replaced : undefined
    const isChanged = messages.length > 0 || back !== undefined
    if (!isChanged && !release) return
    const { length } = this.usage
    const { runId } = this.writer.run
    const usage =
      length > this.#stored ? { runId, usage: [...this.found.usedBefore, ...this.usage] } : undefined
    if (!isChanged && usage === undefined) return this.writer.release()
    // No call runs whose result could not be stored. What has happened already is stored nevertheless.
    const spare = release ? {} : this.#spare(withoutParts)
    await this.writer.append({ ...(isChanged && { messages, head: back ?? head, ...spare }), usage, release })
    this.#stored = length
    this.#checked = calls
    commit()
  }

  #spare(isTight = false) {
    const { openCalls: spare } = this.#branch
    if (isTight && this.#calls === this.#checked) return { spare }
    const largest = Math.min(spare, MOST_LARGEST) * this.settings.limits.resultSize
    return { spare, spareBytes: largest + spare * SMALL_RESULT }
  }

  #renew(leaseMs: number): void {
    this.writer.renew(leaseMs).catch((error: unknown) => {
      // The last save releases the thread, and says itself whether the thread was lost before.
      if (this.#closed !== undefined) return
      // A store that can't be reached now may be back before the lease ends.
      if (isLost(error)) this.#lost.abort(error)
      else this.settings.warn('The lease of a thread could not be renewed.', error)
    })
  }
}
