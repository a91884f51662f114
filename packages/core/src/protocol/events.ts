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

/** The version of AG-UI spoken here: `RunAgentInput.protocolVersion` and `RUN_STARTED.protocolVersion`. */
export const PROTOCOL_VERSION = '1.0'

/** The same event with `type` as a plain string literal, so that neither writing nor reading one needs the enum. */
type Literal<E> = E extends { type: string }
  ? { [K in keyof E]: K extends 'type' ? `${E['type']}` : E[K] }
  : never

type Described = Literal<WireEvent>

/**
 * `RUN_FINISHED`. `finishReason` at its root is no part of AG-UI; servers that say it there instead of in
 * `metadata.finishReason` are common enough that it is let through, unchecked.
 */
type RunFinishedEvent = Extract<Described, { type: 'RUN_FINISHED' }> & { finishReason?: unknown }

/** Every event of AG-UI 1.0, discriminated by a string literal `type`. */
export type AGUIEvent = Exclude<Described, { type: 'RUN_FINISHED' }> | RunFinishedEvent

/** Stands for every text that is no `type` of AG-UI 1.0. There is none in the code: as a kind of text of its own it lets types narrow. */
declare enum OtherType {
  any = 'a type that AG-UI 1.0 does not have',
}

/** An event of a type that AG-UI 1.0 does not have, as it came: a text in `type`, and whatever else it holds. */
export interface UnknownEvent {
  readonly type: OtherType
}

/** The `type` of every event of AG-UI 1.0. */
export type EventType = AGUIEvent['type']

/** The event of one `type`: `EventOf<'TOOL_CALL_START'>`. */
export type EventOf<T extends EventType> = Extract<AGUIEvent, { type: T }>

export type ToolCallStartEvent = EventOf<'TOOL_CALL_START'>
export type MessagesSnapshotEvent = EventOf<'MESSAGES_SNAPSHOT'>
