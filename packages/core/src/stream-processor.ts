import { ChatStore, type ChatStoreOptions } from './chat-store.js'
import { CountersignError, isCountersignError } from './errors.js'
import type { AGUIEvent } from './protocol/events.js'
import { StreamReader } from './stream-reader.js'
import { isRecord } from './value.js'

export interface StreamProcessorOptions extends ChatStoreOptions {
  /** Events of another thread are refused. Default `''`: any thread will do. */
  threadId?: string | undefined
}

/**
 * The state machine of one conversation: takes AG-UI events, and shows immutable snapshots to those who watch it. `ChatClient` is built on it;
 * by itself it works in a worker, on a server or in a test. It is the only writer of the conversation.
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
   * Takes one event of a stream, as parsed from JSON, and checks it. Where it needs a part of AG-UI that is not loaded yet, it gives a promise:
   * wait for it before the next event.
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
   * Takes all events of a stream, one by one or in lists of those that came together, such as the batches of `readServerSentEvents`, which it
   * unwraps. Resolves when the stream has ended. Once `signal` has aborted it takes no more; give the same signal to whatever reads the bytes, so
   * that a stream that waits ends too.
   *
   * @throws CountersignError as `process` does; `truncated-stream` where the stream ended before its run; whatever the stream itself throws. The
   * snapshot has the error as well.
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
    // What it remembers of the order ends with the run.
    this.#reader = undefined
    if (run.phase === 'idle') return
    const { failure } = run
    this.dispatch({
      type: 'run-closed',
      end: failure ? { type: 'failed', error: failure } : { type: 'success' },
    })
  }

  /** The stream broke: the run that was open has failed. */
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

/** What `readServerSentEvents` makes of an event. */
function isSseEvent(value: unknown): value is { readonly data: unknown } {
  return isRecord(value) && 'data' in value && !('type' in value)
}
