import { CountersignError } from '@countersign/core'

/** A key of an object or an index of an array. */
type Step = string | number

/** An open container and the members written so far. */
interface OpenContainer {
  readonly close: '}' | ']'
  readonly written: Set<Step>
}

/** A value inside the arguments, or a piece of a string. */
export interface PartialValue {
  /** RFC 9535, names and indices only: `$.recipe.steps[0]`. */
  readonly path: string
  readonly value: unknown
  /** Whether more of this string follows. */
  readonly goesOn: boolean
}

/**
 * Writes JSON text from values that arrive one by one with their paths, depth first, as Vertex AI streams
 * arguments. Emitted text is final, so a container that was left cannot be reopened.
 */
export class JsonWriter {
  readonly #containers: OpenContainer[] = [{ close: '}', written: new Set() }]
  #path: readonly Step[] = []
  #begun = false
  #openString: string | undefined

  /** The text that this value adds. */
  write({ path, value, goesOn }: PartialValue): string {
    if (this.#openString === path) return this.#growString(value, goesOn)
    const text = this.#closeString() + this.#moveTo(readPath(path), path)
    if (typeof value !== 'string' || !goesOn) return text + JSON.stringify(value ?? null)
    this.#openString = path
    return text + JSON.stringify(value).slice(0, -1)
  }

  /** The text that closes everything. */
  end(): string {
    const begin = this.#begun ? '' : '{'
    const closed =
      this.#closeString() +
      this.#containers
        .toReversed()
        .map(({ close }) => close)
        .join('')
    return begin + closed
  }

  #growString(value: unknown, goesOn: boolean): string {
    const more = typeof value === 'string' ? JSON.stringify(value).slice(1, -1) : ''
    return goesOn ? more : more + this.#closeString()
  }

  #closeString(): string {
    if (this.#openString === undefined) return ''
    this.#openString = undefined
    return '"'
  }

  /** Closes containers that are not on the path, and opens those that are. */
  #moveTo(path: readonly Step[], named: string): string {
    let text = this.#begun ? '' : '{'
    this.#begun = true
    const shared = path.slice(0, -1).findIndex((step, i) => step !== this.#path[i])
    const depth = Math.min(shared === -1 ? path.length - 1 : shared, this.#containers.length - 1)
    while (this.#containers.length > depth + 1) text += this.#containers.pop()?.close ?? ''
    for (const [i, step] of path.slice(depth).entries()) {
      text += this.#place(step, named)
      const next = path[depth + i + 1]
      if (next === undefined) break
      text += typeof next === 'number' ? '[' : '{'
      this.#containers.push({ close: typeof next === 'number' ? ']' : '}', written: new Set() })
    }
    this.#path = path
    return text
  }

  /** The comma and key before a value. */
  #place(step: Step, path: string): string {
    const container = this.#containers.at(-1)
    const isNext = typeof step === 'number' ? container?.written.size === step : container?.close === '}'
    if (container === undefined || !isNext || container.written.has(step)) throw outOfOrder(path)
    const comma = container.written.size > 0 ? ',' : ''
    container.written.add(step)
    return typeof step === 'number' ? comma : `${comma}${JSON.stringify(step)}:`
  }
}

const step = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y

function readPath(path: string): readonly Step[] {
  const steps: Step[] = []
  step.lastIndex = 1
  while (step.lastIndex > 0 && step.lastIndex < path.length) {
    const [, name, index, single, double] = step.exec(path) ?? []
    const quoted = (single ?? double)?.replace(/\\(.)/g, '$1')
    if (index !== undefined) steps.push(Number(index))
    else steps.push(name ?? quoted ?? failedPath(path))
  }
  return path.startsWith('$') && steps.length > 0 ? steps : failedPath(path)
}

function failedPath(path: string): never {
  throw new CountersignError(
    'model-failed',
    `The provider placed an argument at ${path}, which cannot be read.`,
  )
}

function outOfOrder(path: string): CountersignError {
  const message = `The provider placed an argument at ${path}, which it had left already: what was streamed is final.`
  return new CountersignError('model-failed', message, { path })
}
