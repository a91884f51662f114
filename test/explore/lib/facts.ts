import type { ChatClient } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import type { HandStream } from './hand-stream.js'
import type { Invariant, Violation } from './invariants.js'
import type { ModelServer, Piece } from './model-server.js'
import type { Observed } from './observed.js'

/** A request and its stream, as the server knows it. */
export interface ServedRun {
  readonly number: number
  readonly input: RunAgentInput
  readonly stream: HandStream
  readonly pieces: readonly Piece[]
  /** The act inside of which the request was made; `undefined` for one that the client made by itself. */
  readonly cause: string | undefined
  /** How many pieces have gone out. */
  sent: number
  /** The client has seen RUN_STARTED. */
  acknowledged: boolean
  end: 'open' | 'finished' | 'failed' | 'stopped'
}

/** An answer the client took: the first to a request that was shown. */
export interface GivenAnswer {
  readonly id: string
  readonly approved: boolean
  /** As it stood in the first `resume`. */
  entry: string | undefined
  /** The runs whose request had it. */
  readonly carried: ServedRun[]
  /** The user took it back before a request carried it. */
  isWithdrawn?: boolean
}

/** What the user wrote. */
interface Said {
  readonly text: string
  readonly refused: boolean
}

/** What the explorer knows without asking the client. */
export interface Facts {
  readonly client: ChatClient
  readonly server: ModelServer
  readonly runs: ServedRun[]
  readonly answers: Map<string, GivenAnswer>
  /** Requests whose answer is being taken back: they may be seen to be open again, once. */
  readonly reopening: Set<string>
  readonly said: Said[]
  /** How often each client tool was started. */
  readonly toolRuns: Map<string, number>
  readonly log: Observed[]
  readonly violations: Violation[]
  /** The act that is being done now. */
  acting: string | undefined
  /** After `stop()`, until the user acts: the messages as they stood. */
  held: { readonly messages: readonly unknown[] } | undefined
  /** An answer was withdrawn in a callback: that is told after the callback has returned. */
  isLate: boolean
  /** How often the user has acted, so that what was held back may go on. */
  releases: number
  /** A stream failed and the user has done nothing since. */
  failed: boolean
}

export function violate(facts: Facts, invariant: Invariant, why: string): void {
  facts.violations.push({ invariant, why })
  facts.log.push({ kind: 'violation', invariant, why })
}

/** Whether the client holds this stream open. */
export function isOpen({ stream }: ServedRun): boolean {
  return !stream.over && !stream.signal.aborted
}
