import type { MountedPage } from './harness.js'

/** What a page shows for one tool call. */
interface ShownCall {
  readonly name: string
  readonly state: string
  readonly approved: string
  readonly reason: string
  readonly input: unknown
  readonly output: unknown
  readonly error: string
}

/** A page as its user sees and uses it. */
export interface Page {
  readonly mounted: MountedPage
  status(): string
  loading(): boolean
  /** The error message; empty if there is none. */
  error(): string
  /** The number of messages, from the selector. */
  count(): number
  /** The texts of all messages. */
  texts(): readonly string[]
  /** What is shown for each turn: the types of its parts, or the states of its calls. */
  turns(): readonly string[]
  /** What is shown for a call. Throws unless it is shown exactly once. */
  call(id: string): ShownCall
  /** The ids of the approval requests that can be answered. */
  approvals(): readonly string[]
  offers(approvalId: string, button: string): boolean
  queue(): readonly string[]
  /** The element of a message or an approval request, to check that it is preserved. */
  element(selector: string): Element | null
  /** Fills in fields and presses a button, of an approval request or of the composer. */
  press(button: string, approvalId?: string, fields?: Readonly<Record<string, string>>): void
}

/** The page at index `place` of those mounted side by side. */
export function readPage(mounted: MountedPage, place = 0): Page {
  const main = () => {
    const found = mounted.container.querySelectorAll('main')[place]
    if (!found) throw new Error(`There is no page ${place}:\n${mounted.container.innerHTML}`)
    return found
  }
  const one = (selector: string): Element => {
    const found = main().querySelectorAll(selector)
    if (found.length === 1 && found[0]) return found[0]
    throw new Error(`"${selector}" is on the page ${found.length} times:\n${main().outerHTML}`)
  }
  const all = (selector: string) => [...main().querySelectorAll(selector)]
  const texts = (selector: string) => all(selector).map((element) => element.textContent ?? '')
  const formOf = (approvalId: string | undefined) =>
    approvalId === undefined ? 'form[data-composer]' : `form[data-approval="${approvalId}"]`

  return {
    mounted,
    status: () => attribute(main(), 'data-status'),
    loading: () => attribute(main(), 'data-loading') === 'true',
    error: () => texts('[data-error-message]').join(''),
    count: () => Number(one('[data-count]').textContent),
    texts: () => texts('[data-message] [data-text]'),
    turns: () => texts('[data-turns] li'),
    call: (id) => readCall(one(`[data-call="${id}"]`)),
    approvals: () => all('form[data-approval]').map((form) => attribute(form, 'data-approval')),
    offers: (id, button) => one(formOf(id)).querySelector(`button[name="${button}"]`) !== null,
    queue: () => texts('[data-queue] li'),
    element: (selector) => main().querySelector(selector),
    press(button, approvalId, fields = {}) {
      const form = formOf(approvalId)
      for (const [name, value] of Object.entries(fields)) fill(one(`${form} [name="${name}"]`), value)
      const found = one(`${form} button[name="${button}"]`)
      if (found instanceof HTMLElement) found.click()
    },
  }
}

function readCall(section: Element): ShownCall {
  const text = (selector: string) => section.querySelector(selector)?.textContent ?? ''
  return {
    name: attribute(section, 'data-name'),
    state: attribute(section, 'data-state'),
    approved: attribute(section, 'data-approved'),
    reason: attribute(section, 'data-reason'),
    input: readJson(text('[data-input]')),
    output: readJson(text('[data-output]')),
    error: text('[data-error]'),
  }
}

function attribute(element: Element, name: string): string {
  const value = element.getAttribute(name)
  return value === null || value === 'undefined' ? '' : value
}

function readJson(text: string): unknown {
  return text === '' ? undefined : JSON.parse(text)
}

/** Bypasses a property that a framework may have defined over the native one, and dispatches events as typing would. */
function fill(field: Element, value: string): void {
  const { prototype } = HTMLInputElement
  Object.getOwnPropertyDescriptor(prototype, 'value')?.set?.call(field, value)
  field.dispatchEvent(new Event('input', { bubbles: true }))
  field.dispatchEvent(new Event('change', { bubbles: true }))
}
