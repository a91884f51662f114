import { ChatStore, type ChatStoreOptions } from './chat-store.js'
import { CountersignError, isCountersignError } from './errors.js'
import type { AGUIEvent } from './protocol/events.js'
import { StreamReader } from './stream-reader.js'
import { isRecord } from './value.js'

export interface StreamProcessorOptions extends ChatStoreOptions {
  /** Events of other threads are rejected. Default `''`: any thread is accepted. */
  threadId?: string | undefined
}

/**
 * The state of one conversation: takes AG-UI events and publishes immutable snapshots to its subscribers. `ChatClient`
 * is built on it. On its own it works in a worker, on a server or in a test. Nothing else writes the conversation.
 *
 * @example
 * const processor = new StreamProcessor({ threadId, messages })
 * await processor.processStream(readServerSentEvents(response.body))
 * save(processor.getSnapshot().messages)
 */
export class StreamProcessor extends ChatStore {
  readonly #threadId: string | undefined
  #reader: StreamReader | undefined = undefined

  constructor(options: StreamProcessorOptions = {}) {
    super(options)
    this.#threadId = options.threadId || undefined
  }

  /**
   * Validates and applies one event of a stream, parsed from JSON. If it needs a part of AG-UI that is not loaded yet, it returns a
   * promise: wait for it before the next event.
   *
   * @throws CountersignError `malformed-event` or `protocol-violation`: the event broke a rule, and the run has failed. `not-loaded`.
   */
  process(event: unknown): Promise<void> | undefined {
    this.#reader ??= new StreamReader({
      threadId: this.#threadId,
      onFull: (steps) => {
        this.state.moreSteps = { ...steps, ...this.state.moreSteps }
      },
    })
    try {
      return this.#reader.push(event, this.#take)?.catch((error: unknown) => this.#fail(error))
    } catch (error) {
      this.#fail(error)
    }
  }

  /**
   * Processes all events of a stream, one by one or in arrays, such as the batches of `readServerSentEvents`,
   * which it unwraps. Resolves when the stream has ended. Once `signal` is aborted it stops; pass the same
   * signal to the reader of the bytes, so that a waiting stream ends too.
   *
   * @throws CountersignError as `process` does; `truncated-stream` if the stream ended before its run;
   * whatever the stream itself throws. The snapshot has the error as well.
   */
  async processStream(
    events: AsyncIterable<unknown>,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<void> {
    try {
      for await (const together of events) {
        for (const event of Array.isArray(together) ? together : [together]) {
          if (signal?.aborted) break
          const loading = this.process(isSseEvent(event) ? event.data : event)
          if (loading) await loading
        }
        if (signal?.aborted) break
      }
      if (signal?.aborted) this.dispatch({ type: 'run-closed', end: { type: 'aborted' } })
      else this.#reader?.end()
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#reader = undefined
    }
  }

  readonly #take = (event: AGUIEvent): void => {
    if (event.type === 'RUN_STARTED' && this.state.run.phase === 'idle')
      this.dispatch({ type: 'run-opened', runId: event.runId })
    this.dispatch(event)
    const { run } = this.state
    if (event.type !== 'RUN_FINISHED' && event.type !== 'RUN_ERROR') return
    // Its record of the order of events ends with the run.
    this.#reader = undefined
    if (run.phase === 'idle') return
    const { failure } = run
    this.dispatch({
      type: 'run-closed',
      end: failure ? { type: 'failed', error: failure } : { type: 'success' },
    })
  }

  /** The stream broke: fails the open run. */
  #fail(cause: unknown): never {
    const message = cause instanceof Error ? cause.message : String(cause)
    const error = isCountersignError(cause)
      ? cause
      : new CountersignError('connection-failed', `The stream broke: ${message}`, {}, cause)
    this.#reader = undefined
    if (this.state.run.phase === 'idle') this.dispatch({ type: 'failed', error })
    else this.dispatch({ type: 'run-closed', end: { type: 'failed', error } })
    throw error
  }
}

/** Whether a value is an event of `readServerSentEvents`. */
function isSseEvent(value: unknown): value is { readonly data: unknown } {
  return isRecord(value) && 'data' in value && !('type' in value)
}
