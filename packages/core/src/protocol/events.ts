import type { AGUIEvent as WireEvent } from '@ag-ui/core'

export type {
  ActivityMessage,
  AssistantMessage,
  ContentPart,
  Context,
  Interrupt,
  JsonPatch,
  Message,
  Metadata,
  ReasoningMessage,
  ResumeEntry,
  RunAgentInput,
  RunFinishedOutcome,
  TokenUsage,
  Tool,
  ToolCall,
  ToolMessage,
  UserMessage,
} from '@ag-ui/core'

/** The supported version of AG-UI: `RunAgentInput.protocolVersion` and `RUN_STARTED.protocolVersion`. */
export const PROTOCOL_VERSION = '1.0'

/** The same event with `type` as a plain string literal, so that no enum is needed to read or write one. */
type Literal<E> = E extends { type: string }
  ? { [K in keyof E]: K extends 'type' ? `${E['type']}` : E[K] }
  : never

type Described = Literal<WireEvent>

/**
 * `RUN_FINISHED`. A top-level `finishReason` is not part of AG-UI, but enough servers send it there instead
 * of in `metadata.finishReason` that it is accepted, unchecked.
 */
type RunFinishedEvent = Extract<Described, { type: 'RUN_FINISHED' }> & { finishReason?: unknown }

/** Every event of AG-UI 1.0, discriminated by a string literal `type`. */
export type AGUIEvent = Exclude<Described, { type: 'RUN_FINISHED' }> | RunFinishedEvent

/** Stands for any string that is not a `type` of AG-UI 1.0. Exists only as a type: distinct from string literals, it allows narrowing. */
declare enum OtherType {
  any = 'a type that AG-UI 1.0 does not have',
}

/** An event whose type AG-UI 1.0 does not have, unchanged: a string `type`, and any other fields. */
export interface UnknownEvent {
  readonly type: OtherType
}

/** The `type` of every event of AG-UI 1.0. */
export type EventType = AGUIEvent['type']

/** The event of one `type`: `EventOf<'TOOL_CALL_START'>`. */
export type EventOf<T extends EventType> = Extract<AGUIEvent, { type: T }>

export type ToolCallStartEvent = EventOf<'TOOL_CALL_START'>
export type MessagesSnapshotEvent = EventOf<'MESSAGES_SNAPSHOT'>
