import type { Invariant } from './invariants.js'
import type { FaultName } from './model.js'
import type { Piece } from './model-server.js'

/** Where an act came: between two pieces, so many microtasks after the last, or inside of a callback (its how manieth call). */
export type Moment =
  | { readonly at: 'between' }
  | { readonly at: 'same-tick' }
  | { readonly at: 'microtask'; readonly count: number }
  | { readonly at: CallbackName; readonly count: number }

export type CallbackName = 'onApprovalRequest' | 'onFinish' | 'onError' | 'listener'

/** One line of what happened in a timeline. */
export type Observed =
  | {
      readonly kind: 'request'
      readonly run: number
      readonly cause: string | undefined
      readonly answers: string
      readonly users: number
    }
  | { readonly kind: 'sent'; readonly run: number; readonly piece: Piece }
  | { readonly kind: 'ended'; readonly run: number; readonly how: 'end' | FaultName | 'aborted' }
  | { readonly kind: 'act'; readonly act: string; readonly moment: Moment }
  | { readonly kind: 'told'; readonly act: string; readonly status: string }
  | { readonly kind: 'tool'; readonly id: string; readonly what: 'starts' | 'returns' }
  | { readonly kind: 'status'; readonly status: string }
  | { readonly kind: 'violation'; readonly invariant: Invariant; readonly why: string }

/** What makes two timelines the same: events, acts, requests and what became of them, in order; not how many microtasks lay between. */
export function trace(log: readonly Observed[]): string {
  return log.map(printObserved).join('\n')
}

export function printObserved(line: Observed): string {
  switch (line.kind) {
    case 'request':
      return `request ${line.run} by ${line.cause ?? 'itself'}: ${line.users} user messages, resume [${line.answers}]`
    case 'sent':
      return `  stream ${line.run}: ${line.piece.map(({ type }) => type).join(', ')}`
    case 'ended':
      return `  stream ${line.run} ended: ${line.how}`
    case 'act':
      return `act ${line.act}${line.moment.at === 'between' || line.moment.at === 'microtask' ? '' : ` in ${line.moment.at}`}`
    case 'told':
      return `    ${line.act}: ${line.status}`
    case 'tool':
      return `  tool ${line.id} ${line.what}`
    case 'status':
      return `    status ${line.status}`
    case 'violation':
      return `!!! ${line.invariant}: ${line.why}`
    default:
      return line satisfies never
  }
}
