import type { Built } from './build.mjs'
import type { Attack } from './families.mjs'
import type { Ledgers } from './ledgers.mjs'

export interface Played {
  readonly executions: number
  readonly unauthorised: number
  /** The attacker got something. */
  readonly through: boolean
  readonly refused: boolean
  readonly ok: boolean
  readonly codes: readonly string[]
  readonly breaches: readonly string[]
  readonly crashes: readonly string[]
}

export function play(built: Built, attack: Attack, ledgers?: Ledgers): Promise<Played>
