import type { Recording } from './form.js'
import { type RecordedClient, type Recorder, record } from './recorder.js'
import { style } from './style.js'
import { createView } from './view/view.js'

/** The element `<countersign-devtools>`: shows the timeline of a client, or of a recording. */
export interface CountersignDevtools extends HTMLElement {
  /** The client to record from now on, while the element is in a page. `undefined` stops recording. */
  client: RecordedClient | undefined
  /** The recorder of the client. */
  readonly recorder: Recorder | undefined
  /** A recording to show instead of the client. */
  recording: Recording | undefined
}

const NAME = 'countersign-devtools'

/**
 * Defines the element under `name` (default `countersign-devtools`), once. Does nothing without custom elements, as on a server.
 *
 * @example defineDevtools(); const devtools = document.createElement('countersign-devtools'); devtools.client = client
 */
export function defineDevtools(name: string = NAME): void {
  if (typeof customElements === 'undefined' || customElements.get(name)) return
  customElements.define(name, createElementClass())
}

declare global {
  interface HTMLElementTagNameMap {
    'countersign-devtools': CountersignDevtools
  }
}

/** The class is created here, not at load, because a server has no `HTMLElement`. */
function createElementClass(): CustomElementConstructor {
  return class extends HTMLElement implements CountersignDevtools {
    readonly #view = createView((text) => download(this.ownerDocument, text))
    #client: RecordedClient | undefined

    constructor() {
      super()
      const root = this.attachShadow({ mode: 'open' })
      adopt(root)
      root.append(this.#view.element)
    }

    get client() {
      return this.#client
    }
    set client(client) {
      if (client === this.#client) return
      this.#client = client
      this.#view.follow(client && record(client))
    }

    get recorder() {
      return this.#view.recorder
    }

    get recording() {
      return this.#view.recording
    }
    set recording(recording) {
      this.#view.open(recording)
    }

    connectedCallback(): void {
      if (this.#client && !this.#view.recorder) this.#view.follow(record(this.#client))
    }

    /** Deferred, because an element that is moved is reconnected synchronously. */
    disconnectedCallback(): void {
      queueMicrotask(() => {
        if (!this.isConnected) this.#view.follow(undefined)
      })
    }
  }
}

/** A constructed style sheet, which content security policies allow. */
function adopt(root: ShadowRoot): void {
  if (!('adoptedStyleSheets' in root)) return
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(style)
  root.adoptedStyleSheets = [sheet]
}

function download(document: Document, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = 'countersign-recording.json'
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
