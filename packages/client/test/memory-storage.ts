/** A Storage of this process with room for `quota` characters, keys included. */
export class MemoryStorage implements Storage {
  [name: string]: unknown
  readonly #texts = new Map<string, string>()
  quota: number

  constructor(quota = 5_000_000) {
    this.quota = quota
  }

  get length(): number {
    return this.#texts.size
  }

  get used(): number {
    return [...this.#texts].reduce((sum, [key, text]) => sum + key.length + text.length, 0)
  }

  key(index: number): string | null {
    return [...this.#texts.keys()][index] ?? null
  }

  getItem(key: string): string | null {
    return this.#texts.get(key) ?? null
  }

  setItem(key: string, text: string): void {
    const earlier = this.#texts.get(key)
    const freed = earlier === undefined ? 0 : key.length + earlier.length
    if (this.used - freed + key.length + text.length > this.quota) {
      throw new DOMException('No room', 'QuotaExceededError')
    }
    this.#texts.set(key, text)
  }

  removeItem(key: string): void {
    this.#texts.delete(key)
  }

  clear(): void {
    this.#texts.clear()
  }
}
