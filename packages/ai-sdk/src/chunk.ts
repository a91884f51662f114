import { asString } from '@countersign/core'

/** A chunk of the AI SDK's UI message stream (protocol v1), as our server writes it. */
export type AiSdkChunk =
  | { readonly type: 'start'; readonly messageId: string }
  | { readonly type: 'start-step' | 'finish-step' }
  | { readonly type: 'text-start' | 'reasoning-start'; readonly id: string }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | {
      readonly type: 'text-end' | 'reasoning-end'
      readonly id: string
      readonly providerMetadata?: OwnProvider
    }
  | {
      readonly type: 'tool-input-start'
      readonly toolCallId: string
      readonly toolName: string
      readonly providerExecuted?: true
      readonly providerMetadata?: OwnProvider
    }
  | { readonly type: 'tool-input-delta'; readonly toolCallId: string; readonly inputTextDelta: string }
  | ({ readonly type: 'tool-input-available' } & ToolInput)
  | ({ readonly type: 'tool-input-error'; readonly errorText: string } & ToolInput)
  | {
      readonly type: 'tool-approval-request'
      readonly approvalId: string
      readonly toolCallId: string
      readonly reason?: string
      readonly signature?: string
      readonly approvalDescriptor?: unknown
    }
  | {
      readonly type: 'tool-output-available'
      readonly toolCallId: string
      readonly output: unknown
      readonly preliminary?: true
      readonly providerMetadata?: OwnProvider
    }
  | {
      readonly type: 'tool-output-error'
      readonly toolCallId: string
      readonly errorText: string
      readonly providerMetadata?: OwnProvider
    }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | { readonly type: 'tool-approval-response'; readonly approvalId: string; readonly approved: false }
  | { readonly type: 'source-url'; readonly sourceId: string; readonly url: string; readonly title?: string }
  | { readonly type: 'message-metadata'; readonly messageMetadata: unknown }
  | {
      readonly type: `data-${string}`
      readonly id?: string
      readonly data: unknown
      readonly transient?: true
    }
  | { readonly type: 'error'; readonly errorText: string }
  | { readonly type: 'abort'; readonly reason?: string }
  | { readonly type: 'finish'; readonly finishReason?: string }

interface ToolInput {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
  readonly providerExecuted?: true
  readonly providerMetadata?: OwnProvider
}

/** Metadata that an AI SDK client stores with a part and sends back: our `metadata.countersign`, under our name. */
interface OwnProvider {
  readonly countersign: Readonly<Record<string, unknown>>
}

/** Metadata that is sent to the client with a part, and comes back. */
export interface Said {
  readonly providerMetadata?: OwnProvider
}

export function provider(own: Readonly<Record<string, unknown>>): Said {
  return Object.keys(own).length > 0 ? { providerMetadata: { countersign: own } } : {}
}

export function executed(providerExecuted: boolean): { readonly providerExecuted?: true } {
  return providerExecuted ? { providerExecuted } : {}
}

const reasons = new Set(['stop', 'length', 'content-filter', 'tool-calls', 'error'])

export function finishReason(value: unknown): string {
  const reason = (asString(value) ?? 'stop').replaceAll('_', '-')
  return reasons.has(reason) ? reason : 'other'
}

/**
 * The response header of our route that names its run, for the query in which our client asks for the rest of that run: the id,
 * percent-encoded, and as `before` how many chunks are not the run's own.
 */
export const RUN_ID_HEADER = 'x-countersign-run-id'
