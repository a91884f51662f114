import type { AGUIEvent, Message, TokenUsage } from '@countersign/core'
import type { AgentSettings } from '../scope/settings.js'
import { RecordedBranch } from './recorded-branch.js'
import { isFull, isLost, type ThreadWriter } from './thread-writer.js'

/** Milliseconds between two saves of text that is still arriving. */
const SAVE_EVERY = 1000

/**
 * What a run finds of the last reply. `whole`: nothing is known against it. `cut-off`: its process died, and it stays cut off unless this run
 * adds to it. `asked-anew`: it stays as it is unless this run replaces it. `abandoned`: this run only ends one whose process died, so the
 * reply is cut off in any case.
 */
type LastReply = 'whole' | 'cut-off' | 'asked-anew' | 'abandoned'

/** What a run finds in its thread. */
interface Found {
  /** The conversation, with what the request has added. */
  readonly messages: readonly Message[]
  readonly reply: LastReply
  /** What earlier runs with the same id have used. */
  readonly usedBefore: readonly TokenUsage[]
}

export class Recorder {
  readonly #branch: RecordedBranch
  /** The last message before the run's own. */
  readonly #start: Message | undefined
  #hasFailed = false
  readonly #lost = new AbortController()
  readonly #renewal: ReturnType<typeof setInterval>
  #saving: Promise<void> = Promise.resolve()
  readonly usage: TokenUsage[] = []
  /** How much of it is stored. */
  #stored = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed: Promise<void> | undefined

  constructor(
    private readonly settings: AgentSettings,
    private readonly writer: ThreadWriter,
    private readonly found: Found,
  ) {
    const { leaseMs } = settings.approvals
    this.#branch = new RecordedBranch(found.messages)
    this.#start = found.messages.at(-1)
    this.#renewal = setInterval(() => this.#renew(leaseMs), leaseMs / 3)
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  take(event: AGUIEvent): Promise<void> | undefined {
    if (this.#closed) return undefined
    this.#hasFailed ||= event.type === 'RUN_ERROR' && event.code !== 'aborted'
    this.#branch.dispatch(event)
    if (event.type === 'TOOL_CALL_END' || event.type === 'TOOL_CALL_RESULT')
      return this.#save().then(() => this.lost.throwIfAborted())
    this.#timer ??= setTimeout(() => void this.#save(), SAVE_EVERY)
    return undefined
  }

  /** Whether the last message is to be marked as cut off. */
  get #isCut(): boolean {
    const { reply } = this.found
    if (reply === 'abandoned') return true
    if (this.#branch.change().head !== this.#start?.id) return this.#hasFailed
    if (reply !== 'whole') return reply === 'cut-off'
    return this.#hasFailed && this.#start?.role !== 'assistant'
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
    // What a recovery could not store, the next one does: it finds the thread by its hold, which lapses at once.
    const isTriedAgain = this.found.reply === 'abandoned' && !isFull(this.lost.reason)
    await (isTriedAgain ? this.writer.renew(1) : this.writer.release()).catch((error: unknown) =>
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
        const fits =
          isFull(error) &&
          (await this.#store(release, true).then(
            () => true,
            () => false,
          ))
        if (!fits || release || this.#branch.openCalls === 0) this.#lost.abort(error)
      })
    return this.#saving
  }

  /** `isCut`: with the mark of a reply that was cut off. It comes with the release, so that no page sees a free thread without it. */
  async #store(release: boolean, withoutParts = false, isCut = release && this.#isCut): Promise<void> {
    if (this.lost.aborted) return
    const { messages, head, commit } = this.#branch.change({ withoutParts, isCut })
    const isChanged = messages.length > 0
    if (!isChanged && !release) return
    const { length } = this.usage
    const { runId } = this.writer.run
    const usage =
      length > this.#stored ? { runId, usage: [...this.found.usedBefore, ...this.usage] } : undefined
    if (!isChanged && usage === undefined) return this.writer.release()
    // No call runs whose result could not be stored. What has happened already is stored nevertheless.
    const spare = release ? 0 : this.#branch.openCalls
    try {
      await this.writer.append({ ...(isChanged && { messages, head, spare }), usage, release })
    } catch (error) {
      if (isCut && isFull(error)) return this.#store(release, withoutParts, false)
      throw error
    }
    this.#stored = length
    commit()
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
