import { ChunkExpander } from './chunks.js'
import { type AGUIEvent, PROTOCOL_VERSION } from './events.js'
import { countOf, goesOn } from './plain.js'
import { type Fields, validateEvent } from './validate.js'
import { EventVerifier, type ExpectedRun } from './verify.js'

/** Something harmless in the stream that AG-UI 1.0 does not describe. */
export interface ReaderWarning {
  /**
   * `unknown-event`: an event was ignored. `unknown-field`: fields of it, or members of them, were removed.
   * `protocol-version`: the server's version is newer or invalid; the run continues.
   */
  code: 'unknown-event' | 'unknown-field' | 'protocol-version'
  message: string
  /** The event as received. */
  event: unknown
}

export interface EventReaderOptions extends ExpectedRun {
  onWarning?: ((warning: ReaderWarning) => void) | undefined
  /** Receives each event of unknown type, as received, instead of the sink. */
  onUnknown?: ((event: { readonly type: string }) => void) | undefined
}

/** The strict validation of one stream of events. Unusable after it has thrown. */
export interface EventReader {
  /**
   * Takes the next event, parsed from JSON, and passes it to `sink`: the same object (a copy if something
   * unknown had to be removed), the expansion of a chunk, or nothing.
   *
   * @throws CountersignError `malformed-event`, `protocol-violation`
   */
  push(raw: unknown, sink: (event: AGUIEvent) => void): void
  /** The stream has ended. @throws CountersignError `truncated-stream` unless its last run has ended too. */
  end(): void
}

const isDelta = /_(CONTENT|ARGS)$/

/**
 * Reads one stream strictly: known fields (`validateEvent`), chunks (`ChunkExpander`), order
 * (`EventVerifier`). Pass the `threadId` and `runId` of the request to accept only events of that run.
 */
export function createEventReader(options: EventReaderOptions = {}): EventReader {
  return new Reader(options)
}

class Reader implements EventReader {
  readonly #options: EventReaderOptions
  readonly #chunks = new ChunkExpander()
  readonly #verifier: EventVerifier
  /** The previous event, if it was a plain delta. */
  #before: Fields | undefined = undefined

  constructor(options: EventReaderOptions) {
    this.#options = options
    this.#verifier = new EventVerifier(options)
  }

  push(raw: unknown, sink: (event: AGUIEvent) => void): void {
    if (this.#before && goesOn(this.#before, raw)) sink(raw)
    else this.#pushWhole(raw, sink)
  }

  #pushWhole(raw: unknown, sink: (event: AGUIEvent) => void): void {
    this.#before = undefined
    const removed: string[] = []
    const event = validateEvent(raw, removed)
    if (!event) {
      this.#drop(raw as { type: string })
      return
    }
    if (removed.length > 0)
      this.#warn(
        'unknown-field',
        `Left out what AG-UI ${PROTOCOL_VERSION} does not describe: ${removed.join(', ')}`,
        raw,
      )
    if (event.type === 'RUN_STARTED') this.#negotiate(event.protocolVersion, raw)
    const expanded = this.#chunks.expand(event)
    if ('type' in expanded) this.#deliver(expanded, sink)
    else for (const next of expanded) this.#deliver(next, sink)
    if (isDelta.test(event.type) && countOf(event) === 3) this.#before = { ...event }
  }

  end(): void {
    this.#verifier.end()
  }

  #deliver(event: AGUIEvent, sink: (event: AGUIEvent) => void): void {
    this.#verifier.verify(event)
    sink(event)
  }

  #drop(event: { type: string }): void {
    this.#warn('unknown-event', `Left out ${event.type}: AG-UI ${PROTOCOL_VERSION} has no such event`, event)
    this.#options.onUnknown?.(event)
  }

  #negotiate(version = PROTOCOL_VERSION, raw: unknown): void {
    if (/^\d+\.\d+$/.test(version) && Number.parseFloat(version) <= Number.parseFloat(PROTOCOL_VERSION))
      return
    this.#warn('protocol-version', `The server speaks AG-UI ${version}, this client ${PROTOCOL_VERSION}`, raw)
  }

  #warn(code: ReaderWarning['code'], message: string, event: unknown): void {
    this.#options.onWarning?.({ code, message, event })
  }
}
