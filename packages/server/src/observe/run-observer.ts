import type { CallStarted, ModelStarted, Observe, RunEventDetails, RunFields } from './events.js'

interface ObserverOptions {
  readonly observe: Observe
  readonly run: Pick<RunFields, 'threadId' | 'runId' | 'ownerHash'>
  readonly now: () => number
  readonly warn: (message: string, error: unknown) => void
}

/** Reports the events of one run. Nothing that the observer does reaches the run. */
export class RunObserver {
  /** The current step. */
  step = 0

  constructor(private readonly options: ObserverOptions) {}

  /** Returns the event as it was reported. */
  report<E extends RunEventDetails>(details: E): E & RunFields {
    const { observe, run, now, warn } = this.options
    const event = { ...details, at: now(), ...run, step: this.step }
    try {
      Promise.resolve(observe(event)).catch((error: unknown) => warn('An observer failed.', error))
    } catch (error) {
      warn('An observer failed.', error)
    }
    return event
  }

  /** Milliseconds since an event. */
  since({ at }: RunFields): number {
    return Math.max(0, this.options.now() - at)
  }

  /** Does the work that an event reports as started, exactly once, inside of what the observer wraps around it. */
  within<T>(event: RunFields & (ModelStarted | CallStarted), work: () => Promise<T>): Promise<T> {
    const { observe, warn } = this.options
    let begun: Promise<T> | undefined
    const once = () => {
      begun ??= work()
      return begun
    }
    try {
      // Its own promise is not needed, and its rejection is handled where the work is awaited.
      observe.within?.(event, once).catch(() => {})
    } catch (error) {
      warn('An observer failed.', error)
    }
    return once()
  }

  /** What an observer may see of arguments and texts, as JSON. Undefined if it has not asked for them. */
  content<C>(make: () => C): C | undefined {
    return this.options.observe.content ? make() : undefined
  }
}

/** A value as JSON; undefined if it can't be written. */
export function asJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
