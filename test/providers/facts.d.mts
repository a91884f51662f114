import type { ModelEvent } from '@countersign/server'
import type { Protocol } from './protocols.mjs'

/** The facts of an `expect.json`. */
export function factsOf(
  events: readonly ModelEvent[],
  error: unknown,
  protocol: Protocol,
): Readonly<Record<string, unknown>>
