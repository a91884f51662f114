import { type ApplyPatch, isRecord, sameJson } from '@countersign/core'

/**
 * RFC 6902 for AG-UI state and activity deltas. A patch that does not apply completely throws and changes nothing. Values that a
 * reader has seen are not mutated: the path to a change is copied, once after each read. The `copy` operations of a conversation
 * may duplicate at most 100,000 values, plus 10 for each delta; otherwise a few bytes could double a document endlessly.
 *
 * @example new ChatClient({ connection, statePatch })
 */
export const statePatch: ApplyPatch = (
  document,
  patch,
  memory = { owned: new WeakSet(), copies: 100_000, isUsed: true },
) => {
  const patching = new Patching(document, memory)
  try {
    for (const operation of patch) patching.apply(operation)
  } catch (error) {
    patching.undo()
    throw error
  }
  return patching.root
}

type Operation = Parameters<ApplyPatch>[1][number]
type Memory = Parameters<ApplyPatch>[2]
type Container = unknown[] | Record<string, unknown>

/** The target of a pointer: a member of a container that may be mutated. */
interface Place {
  readonly holder: Container
  readonly key: string
}

class Patching {
  root: unknown
  readonly #memory: Memory
  readonly #undone: (() => void)[] = []

  constructor(root: unknown, memory: Memory) {
    this.root = root
    this.#memory = memory
  }

  undo(): void {
    for (const back of this.#undone.reverse()) back()
  }

  apply(operation: Operation): void {
    const { op, path } = operation
    switch (op) {
      case 'add':
        this.#add(path, operation.value)
        break
      case 'replace':
        this.#get(path)
        this.#set(path, operation.value)
        break
      case 'remove':
        this.#remove(path)
        break
      case 'copy':
        this.#add(path, this.#copyOf(this.#get(operation.from)))
        break
      case 'move': {
        if (path.startsWith(`${operation.from}/`)) fail('a value cannot move into itself')
        const value = this.#get(operation.from)
        this.#remove(operation.from)
        this.#add(path, value)
        break
      }
      case 'test':
        if (!sameJson(this.#get(path), operation.value)) fail(`the value at ${path} is another`)
        break
      default:
        operation satisfies never
    }
  }

  #get(path: string): unknown {
    return keysOf(path).reduce(memberOf, this.root)
  }

  #add(path: string, value: unknown): void {
    const place = this.#placeOf(path)
    if (!place || !Array.isArray(place.holder)) {
      this.#set(path, value, place)
      return
    }
    const { holder, key } = place
    const index = key === '-' ? holder.length : indexOf(key, holder.length)
    if (index === holder.length) holder.push(value)
    else holder.splice(index, 0, value)
    this.#undone.push(() => holder.splice(index, 1))
  }

  #set(path: string, value: unknown, place = this.#placeOf(path)): void {
    if (!place) {
      this.root = value
      return
    }
    const { key } = place
    const holder = place.holder as Record<string, unknown>
    const before = Object.hasOwn(holder, key) ? { value: holder[key] } : undefined
    holder[key] = value
    this.#undone.push(() => {
      if (before) holder[key] = before.value
      else delete holder[key]
    })
  }

  #remove(path: string): void {
    const removed = this.#get(path)
    const place = this.#placeOf(path)
    if (!place) {
      this.root = null
      return
    }
    const { holder, key } = place
    if (Array.isArray(holder)) {
      const index = indexOf(key, holder.length - 1)
      // Engines shift the first item off a long array quickly, but move all others for `splice`.
      if (index === 0) holder.shift()
      else holder.splice(index, 1)
      this.#undone.push(() => holder.splice(index, 0, removed))
    } else {
      delete holder[key]
      this.#undone.push(() => {
        holder[key] = removed
      })
    }
  }

  /** The place of a pointer, after making all containers on the way mutable; `undefined` for the document itself. */
  #placeOf(path: string): Place | undefined {
    const keys = keysOf(path)
    const key = keys.pop()
    if (key === undefined) return undefined
    let holder = this.#own(this.root)
    this.root = holder
    for (const step of keys) {
      const inner = this.#own(memberOf(holder, step))
      ;(holder as Record<string, unknown>)[step] = inner
      holder = inner
    }
    return { holder, key }
  }

  #own(value: unknown): Container {
    if (!isContainer(value)) return fail('it is no array or object')
    if (this.#memory.owned.has(value)) return value
    const copy = Array.isArray(value) ? value.slice() : { ...value }
    this.#memory.owned.add(copy)
    return copy
  }

  /** Copied deeply, so that a value in two places is not mutated in both. */
  #copyOf(value: unknown): unknown {
    if (--this.#memory.copies < 0) fail('the copies of this conversation take too many values along')
    if (Array.isArray(value)) return value.map((item) => this.#copyOf(item))
    if (!isRecord(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#copyOf(member)]))
  }
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

function memberOf(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return value[indexOf(key, value.length - 1)]
  if (!isRecord(value) || !Object.hasOwn(value, key)) return fail(`there is no ${key}`)
  return value[key]
}

function indexOf(key: string, most: number): number {
  return /^(?:0|[1-9]\d{0,9})$/.test(key) && Number(key) <= most
    ? Number(key)
    : fail(`there is no item ${key}`)
}

function keysOf(path: string): string[] {
  const keys = path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  return keys.includes('__proto__') ? fail('the key "__proto__" is refused') : keys
}

function fail(why: string): never {
  throw new Error(`The patch does not apply: ${why}.`)
}
