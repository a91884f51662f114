/** One attack. What it does is in `play`; the rest says what is expected of it. */
export interface Attack {
  readonly name: string
  readonly sends: string
  /** The stable code it is refused with, or in a few words what the server did where nothing is refused. */
  readonly code: string
  /** The same where the ledger outlives its process, if that differs. */
  readonly durable?: string
  /** Runs of gated tools that are right. Default 0. */
  readonly executions?: number
  /** The check that stops it; `behind`: those that would without it; `stands`: what else would, where that is no single check. */
  readonly check: string
  readonly behind?: readonly string[]
  readonly stands?: string
  /** It is a race: without its check alone it may get through, or what stands behind it may be faster. */
  readonly chance?: boolean
}

export const families: readonly { readonly family: string; readonly attacks: readonly Attack[] }[]
