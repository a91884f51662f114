import { CountersignError } from './errors.js'
import type { MoreSteps } from './machine/state.js'
import type { AGUIEvent } from './protocol/events.js'
import { countOf, goesOn, isPlain } from './protocol/plain.js'
import type { EventReader, EventReaderOptions } from './protocol/reader.js'
import { violation } from './protocol/violation.js'

/** The entry `@countersign/core/ag-ui`: the strict reader, and the steps for what it lets through. */
export type FullProtocol = typeof import('./ag-ui.js')

let full: FullProtocol | undefined

/**
 * Loads what AG-UI has beyond texts, reasoning, calls and approvals, as a {@link StreamReader} does when a stream first needs it. For tests, and
 * for pages that want to load it with everything else.
 *
 * @throws CountersignError `not-loaded`: the file did not load.
 */
export async function loadFullProtocol(): Promise<FullProtocol> {
  full ??= await import('./ag-ui.js').catch((cause: unknown) => {
    const message = 'A part of the page did not load. Try again, or reload the page.'
    throw new CountersignError('not-loaded', message, {}, cause)
  })
  return full
}

export interface StreamReaderOptions extends EventReaderOptions {
  /**
   * Check every rule of AG-UI 1.0 also in a plain chat, such as that there are no unknown fields, as soon as the strict reader is loaded, which
   * begins at once. Default: no.
   */
  strict?: boolean | undefined
  /** The stream needs more than a plain chat does: the state that takes its events has to have these steps as well. */
  onFull(steps: MoreSteps): void
}

/**
 * Reads one stream. While it is a plain chat its events pass with a look at their fields; at the first one that is not, the strict reader is
 * loaded, told what has passed, and reads the rest.
 */
export class StreamReader {
  readonly #options: StreamReaderOptions
  #strict: EventReader | undefined = undefined
  /** The events so far that matter to the order, for the strict reader. */
  readonly #passed: AGUIEvent[] = []
  /** The id of the run that is open. */
  #run: string | undefined = undefined
  /** A run has ended. */
  #isOver = false
  /** The messages, calls and steps that were begun and have not ended. */
  readonly #open = new Set<string>()
  /** The event before, if it was a delta and nothing else. */
  #before: Readonly<Record<string, unknown>> | undefined = undefined

  constructor(options: StreamReaderOptions) {
    this.#options = options
    // What is not there yet is not waited for: a plain chat is read all the same.
    if (options.strict) loadFullProtocol().catch(() => {})
  }

  /**
   * Takes the next event and hands what it stands for to `sink`. Where something has to be loaded first it gives a promise, and nothing
   * else may be pushed until that is settled.
   *
   * @throws CountersignError `malformed-event`, `protocol-violation`
   */
  push(raw: unknown, sink: (event: AGUIEvent) => void): Promise<void> | undefined {
    if (!this.#strict) {
      const isStrict = this.#options.strict && full
      if (!isStrict && this.#isTaken(raw)) {
        sink(raw as AGUIEvent)
        return undefined
      }
      if (!full) return loadFullProtocol().then(() => this.push(raw, sink))
      this.#strict = this.#openStrict(full)
    }
    this.#strict.push(raw, sink)
    return undefined
  }

  /** The stream has ended. @throws CountersignError `truncated-stream` unless its last run has ended too. */
  end(): void {
    if (this.#strict) this.#strict.end()
    else if (!this.#isOver || this.#run !== undefined)
      throw violation('truncated-stream', 'end', 'RUN_FINISHED or RUN_ERROR is missing')
  }

  #isTaken(raw: unknown): boolean {
    if (this.#before && goesOn(this.#before, raw)) return true
    this.#before = undefined
    if (!isPlain(raw) || !this.#isInOrder(raw as AGUIEvent)) return false
    if ('delta' in raw && countOf(raw) === 3) this.#before = { ...raw }
    return true
  }

  /** Whether a plain event may come now. Where it may not, the strict reader says why. */
  #isInOrder(event: AGUIEvent): boolean {
    const { type } = event
    const { toolCallId, messageId = toolCallId, stepName }: Readonly<Record<string, unknown>> = event
    if (type === 'CUSTOM' || type === 'RAW') return this.#run !== undefined
    const isAllowed = /^RUN_/.test(type) ? this.#beginsOrEnds(event) : this.#run !== undefined
    const [, stem, step] = /^((?:TEXT|REA|TOOL|STEP).*)_(START|END|FINISHED|CONTENT|ARGS)/.exec(type) ?? []
    if (!isAllowed || !stem) return isAllowed && this.#passed.push(event) > 0
    const thing = `${stem} ${stepName ?? (stem === 'TOOL_CALL' ? toolCallId : messageId)}`
    const isDelta = step === 'CONTENT' || step === 'ARGS'
    if (this.#open.has(thing) === (step === 'START')) return false
    if (isDelta) return true
    if (step === 'START') this.#open.add(thing)
    else this.#open.delete(thing)
    this.#passed.push(event)
    return true
  }

  #beginsOrEnds(event: AGUIEvent): boolean {
    const { threadId, runId } = this.#options
    switch (event.type) {
      case 'RUN_STARTED':
        // The request's run is the first one; the others of its stream have ids that the server gave.
        if (this.#run !== undefined || differs(threadId, event.threadId)) return false
        if (!this.#isOver && differs(runId, event.runId)) return false
        this.#run = event.runId
        return true
      case 'RUN_FINISHED':
        if (this.#run !== event.runId || differs(threadId, event.threadId) || this.#open.size > 0)
          return false
        break
      default:
        if (this.#run === undefined && this.#isOver) return false
    }
    this.#run = undefined
    this.#open.clear()
    this.#isOver = true
    return true
  }

  #openStrict({ createEventReader, fullSteps }: FullProtocol): EventReader {
    const strict = createEventReader(this.#options)
    for (const event of this.#passed) strict.push(event, () => {})
    this.#passed.length = 0
    this.#options.onFull(fullSteps)
    return strict
  }
}

/** What is not expected is not compared. */
function differs(expected: string | undefined, actual: string): boolean {
  return expected !== undefined && expected !== actual
}
