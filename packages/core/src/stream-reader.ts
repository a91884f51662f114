import { CountersignError } from './errors.js'
import type { MoreSteps } from './machine/state.js'
import type { AGUIEvent } from './protocol/events.js'
import { countOf, goesOn, isPlain } from './protocol/plain.js'
import type { EventReader, EventReaderOptions } from './protocol/reader.js'
import { violation } from './protocol/violation.js'

/** The entry point `@countersign/core/ag-ui`: the strict reader, and the steps for the events it accepts. */
export type FullProtocol = typeof import('./ag-ui.js')

let full: FullProtocol | undefined

/**
 * Loads the parts of AG-UI beyond texts, reasoning, calls and approvals; a {@link StreamReader} does this
 * when a stream first needs them. For tests, and for pages that want to load everything up front.
 *
 * @throws CountersignError `not-loaded`: the file could not be loaded.
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
   * Enforces every rule of AG-UI 1.0 also for a plain chat, such as no unknown fields, once the strict reader
   * is loaded. Loading starts at once. Default: no.
   */
  strict?: boolean | undefined
  /** The stream needs more than a plain chat: the state that takes its events must also have these steps. */
  onFull(steps: MoreSteps): void
}

/**
 * Reads one stream. Events of a plain chat pass after a quick check of their fields. At the first other
 * event, the strict reader is loaded, replays what has passed, and reads the rest.
 */
export class StreamReader {
  readonly #options: StreamReaderOptions
  #strict: EventReader | undefined = undefined
  /** The events so far that matter for the order, for the strict reader. */
  readonly #passed: AGUIEvent[] = []
  /** The id of the open run. */
  #run: string | undefined = undefined
  /** A run has ended. */
  #isOver = false
  /** The messages, calls and steps that are open. */
  readonly #open = new Set<string>()
  /** The previous event, if it was a plain delta. */
  #before: Readonly<Record<string, unknown>> | undefined = undefined

  constructor(options: StreamReaderOptions) {
    this.#options = options
    // Loads in the background: until then, a plain chat is read without it.
    if (options.strict) loadFullProtocol().catch(() => {})
  }

  /**
   * Takes the next event and passes it, or what it expands to, to `sink`. If something must be loaded first,
   * it returns a promise; push nothing else until that is settled.
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

  /** Whether a plain event is allowed now. If not, the strict reader reports why. */
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
        // The first run is that of the request; later runs in the stream have ids chosen by the server.
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

function differs(expected: string | undefined, actual: string): boolean {
  return expected !== undefined && expected !== actual
}
