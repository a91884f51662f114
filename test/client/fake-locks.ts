interface Waiting {
  readonly owner: FakeLocks
  readonly hold: () => unknown
  readonly freed: (result: unknown) => void
  isHeld: boolean
}

const browsers = new WeakMap<object, Map<string, Waiting[]>>()

/** Web Locks as one page sees them. Pages with the same `browser` share them, and one that leaves releases all of its own. */
export class FakeLocks {
  /** Milliseconds until others can have a lock that was released. */
  static lingers = 0
  readonly #browser: Map<string, Waiting[]>
  #isGone = false

  /** `browser`: any object that stands for it. */
  constructor(browser: object) {
    this.#browser = browsers.get(browser) ?? new Map()
    browsers.set(browser, this.#browser)
  }

  /** Makes a client of this page while the platform has these locks. */
  during<T>(make: () => T): T {
    const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
    Object.defineProperty(globalThis, 'navigator', { value: { locks: this }, configurable: true })
    try {
      return make()
    } finally {
      if (before) Object.defineProperty(globalThis, 'navigator', before)
      else Reflect.deleteProperty(globalThis, 'navigator')
    }
  }

  // As browsers do: never at once, and `null` if another page has it.
  async request(
    name: string,
    { ifAvailable, signal }: LockOptions,
    hold: (lock: Lock | null) => unknown,
  ): Promise<unknown> {
    if (ifAvailable && signal) throw new DOMException('not both', 'NotSupportedError')
    await Promise.resolve()
    // The code of a closed page still runs in a test, but a browser would not hear it.
    if (this.#isGone) return new Promise(() => {})
    const waiting = this.#browser.get(name) ?? []
    this.#browser.set(name, waiting)
    if (ifAvailable && waiting.length > 0) return hold(null)
    return new Promise((resolve, reject) => {
      const one: Waiting = {
        owner: this,
        isHeld: false,
        hold: () => hold({ name, mode: 'exclusive' }),
        freed: resolve,
      }
      signal?.addEventListener('abort', () => {
        if (one.isHeld) return
        this.#drop(name, one)
        reject(signal.reason)
      })
      waiting.push(one)
      this.#grant(name)
    })
  }

  async query(): Promise<LockManagerSnapshot> {
    const all = [...this.#browser].flatMap(([name, ones]) => ones.map(({ isHeld }) => ({ name, isHeld })))
    return { held: all.filter(({ isHeld }) => isHeld), pending: all.filter(({ isHeld }) => !isHeld) }
  }

  leave(): void {
    this.#isGone = true
    for (const [name, all] of this.#browser)
      for (const one of [...all]) if (one.owner === this) this.#drop(name, one)
  }

  #grant(name: string): void {
    const [first] = this.#browser.get(name) ?? []
    if (!first || first.isHeld) return
    first.isHeld = true
    void Promise.resolve(first.hold()).then(async (result) => {
      if (FakeLocks.lingers > 0) await new Promise((resolve) => setTimeout(resolve, FakeLocks.lingers))
      this.#drop(name, first)
      first.freed(result)
    })
  }

  #drop(name: string, one: Waiting): void {
    const all = this.#browser.get(name) ?? []
    const at = all.indexOf(one)
    if (at >= 0) all.splice(at, 1)
    this.#grant(name)
  }
}
