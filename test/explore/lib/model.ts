import type { ChatClient, ChatClientOptions, PendingMessageMode, stream } from '@countersign/client'

/** The client to explore: the module, so that a changed copy of it can be explored just the same. */
export interface ClientModule {
  readonly ChatClient: new (options: ChatClientOptions) => ChatClient
  readonly stream: typeof stream
}

/**
 * One call that the modelled server makes. `gated`: runs on the server, asks first. `client`: runs in the client. `gated-client`: runs in
 * the client, asks first. `snapshot`: gated, and followed by a MESSAGES_SNAPSHOT that claims the user had said yes.
 */
export type CallKind = 'gated' | 'client' | 'gated-client' | 'snapshot'

/** What a user may do beside answering what is shown once nothing moves any more. */
export type ActName =
  | 'approve'
  | 'approve-all'
  | 'deny'
  | 'cancel'
  | 'withdraw'
  | 'repeat'
  | 'contradict'
  | 'by-call'
  | 'stop'
  | 'send'
  | 'retry'

/** How a stream may break: RUN_ERROR, a broken connection, an end without RUN_FINISHED. Before its first event it fails outright. */
export type FaultName = 'error' | 'cut' | 'end'

/**
 * What is explored: a server, and the bounds of what goes otherwise than planned. By the plan the server streams to its end and the user
 * says yes to whatever is shown once nothing moves, retries what failed or was stopped; so every timeline comes to its end
 * and every answer has to be delivered by then.
 */
export interface Model {
  readonly name: string
  /** What the server asks, run by run. Calls of one stage are asked together; what comes after the last stage is a text. */
  readonly stages: readonly (readonly CallKind[])[]
  readonly mode: PendingMessageMode
  /** How many deviations a timeline may have: acts out of turn and faults together. */
  readonly deviations: number
  /** The acts that may come out of turn. */
  readonly acts: readonly ActName[]
  /** Default: none. */
  readonly faults?: readonly FaultName[]
  /** At most so many faults. Default 1. */
  readonly maxFaults?: number
  /** How many microtasks after an end (RUN_FINISHED, end of the stream, a fault, a client tool's return) an act may come. Default 0. */
  readonly microtasks?: number
  /** Of these microtasks only those after which something can be seen to have changed. Default: each of them. */
  readonly sparse?: boolean
  /** Whether acts may come before the client has taken an event in that is on its way already. Default: no. */
  readonly early?: boolean
  /** Whether acts may come inside of callbacks and of listeners that hear of a new status. Default: no. */
  readonly callbacks?: boolean
  /** Whether a call's START, ARGS and END come one by one. Default: together, as one piece off the wire. */
  readonly fine?: boolean
  /** What becomes of a stream that was stopped: explored if true; by default its events go on coming at once. */
  readonly late?: boolean
}
