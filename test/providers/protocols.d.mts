import type { Model } from '@countersign/server'
import type { Recording } from './server.mjs'

export interface SaidCall {
  readonly id: string
  readonly name: string
  /** JSON text. */
  readonly arguments: string
  /** The provider asks, under this id, before it runs the call itself. */
  readonly asks?: string
  /** The provider runs the call that it asked about under this id, with this output. */
  readonly asked?: string
  readonly output?: string
}

/** How one protocol is spoken in tests. */
export interface Protocol {
  readonly name: string
  /** S3.55 to S3.60: the line of its streaming case; the next one is that of its whole answers. */
  readonly line: number
  /** Whether the provider itself asks before it runs tools. */
  readonly asks?: boolean
  model(origin: string, options: { stream: boolean; id?: string | undefined }): Model
  /** What a server sends that says this. */
  say(answer: { text?: string; calls?: readonly SaidCall[]; stream?: boolean }): Recording
}

export const adapters: readonly Protocol[]
export const protocols: Readonly<Record<string, Protocol>>
