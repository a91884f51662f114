import { type AGUIEvent, type Message, StreamProcessor, type TokenUsage } from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import type { AgentSettings } from '../scope/settings.js'
import type { StoredMessage } from '../threads/thread-store.js'
import { BranchDiff } from './branch.js'
import { isTakenOver, type ThreadWriter } from './thread-writer.js'

/** Milliseconds between two saves of text that is still arriving. */
const SAVE_EVERY = 1000

/** Keeps the conversation of an open run, and stores it. */
export class Recorder {
  readonly #settings: AgentSettings
  readonly #writer: ThreadWriter
  readonly #processor = new StreamProcessor({ moreSteps: fullSteps })
  readonly #diff: BranchDiff
  readonly #lost = new AbortController()
  readonly #renewal: ReturnType<typeof setInterval>
  #saving: Promise<void> = Promise.resolve()
  /** Filled by the run. */
  readonly usage: TokenUsage[] = []
  /** How much of it is stored. */
  #stored = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed: Promise<void> | undefined

  constructor(
    settings: AgentSettings,
    writer: ThreadWriter,
    leaseMs: number,
    stored: readonly StoredMessage[],
    messages: readonly Message[],
  ) {
    this.#settings = settings
    this.#writer = writer
    this.#processor.dispatch({ type: 'MESSAGES_SNAPSHOT', messages: [...messages] })
    this.#diff = new BranchDiff(stored, this.#processor.getSnapshot().messages)
    this.#renewal = setInterval(() => this.#renew(leaseMs), leaseMs / 3)
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  take(event: AGUIEvent): Promise<void> | undefined {
    if (this.#closed) return undefined
    this.#processor.dispatch(event)
    if (event.type === 'TOOL_CALL_END' || event.type === 'TOOL_CALL_RESULT')
      return this.#save().then(() => this.lost.throwIfAborted())
    this.#timer ??= setTimeout(() => void this.#save(), SAVE_EVERY)
    return undefined
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
    await this.#writer
      .release()
      .catch((error: unknown) => this.#settings.warn('A thread was not released.', error))
    throw this.lost.reason
  }

  /** Saves one after the other. A failure stops the run: nothing may happen that is not stored. */
  #save(release = false): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#saving = this.#saving
      .then(() => this.#store(release))
      .catch((error: unknown) => this.#lost.abort(error))
    return this.#saving
  }

  async #store(release: boolean): Promise<void> {
    if (this.lost.aborted) return
    const change = this.#diff.next(this.#processor.getSnapshot().messages)
    if (change === undefined && !release) return
    const { messages, head } = change ?? {}
    const { length } = this.usage
    const usage = length > this.#stored ? { runId: this.#writer.run.runId, usage: this.usage } : undefined
    if (change === undefined && usage === undefined) return this.#writer.release()
    await this.#writer.append({ messages, head, usage, release })
    this.#stored = length
    change?.commit()
  }

  #renew(leaseMs: number): void {
    this.#writer.renew(leaseMs).catch((error: unknown) => {
      // A store that can't be reached now may be back before the lease ends.
      if (isTakenOver(error)) this.#lost.abort(error)
      else this.#settings.warn('The lease of a thread could not be renewed.', error)
    })
  }
}
