import type { AGUIEvent as WireEvent } from '@ag-ui/core'

export type {
  ActivityMessage,
  AssistantMessage,
  ContentPart,
  Context,
  DeveloperMessage,
  Interrupt,
  JsonPatch,
  JsonPatchOperation,
  Message,
  Metadata,
  PartSource,
  ReasoningMessage,
  ResumeEntry,
  Role,
  RunAgentInput,
  RunFinishedOutcome,
  SubagentFinishedOutcome,
  SystemMessage,
  TextMessageRole,
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
export type RunFinishedEvent = Extract<Described, { type: 'RUN_FINISHED' }> & { finishReason?: unknown }

/** Every event of AG-UI 1.0, discriminated by a string literal `type`. */
export type AGUIEvent = Exclude<Described, { type: 'RUN_FINISHED' }> | RunFinishedEvent

/** The `type` of every event of AG-UI 1.0. */
export type EventType = AGUIEvent['type']

/** The event of one `type`: `EventOf<'TOOL_CALL_START'>`. */
export type EventOf<T extends EventType> = Extract<AGUIEvent, { type: T }>

export type TextMessageStartEvent = EventOf<'TEXT_MESSAGE_START'>
export type TextMessageContentEvent = EventOf<'TEXT_MESSAGE_CONTENT'>
export type TextMessageEndEvent = EventOf<'TEXT_MESSAGE_END'>
export type TextMessageChunkEvent = EventOf<'TEXT_MESSAGE_CHUNK'>
export type ToolCallStartEvent = EventOf<'TOOL_CALL_START'>
export type ToolCallArgsEvent = EventOf<'TOOL_CALL_ARGS'>
export type ToolCallEndEvent = EventOf<'TOOL_CALL_END'>
export type ToolCallChunkEvent = EventOf<'TOOL_CALL_CHUNK'>
export type ToolCallResultEvent = EventOf<'TOOL_CALL_RESULT'>
export type StateSnapshotEvent = EventOf<'STATE_SNAPSHOT'>
export type StateDeltaEvent = EventOf<'STATE_DELTA'>
export type MessagesSnapshotEvent = EventOf<'MESSAGES_SNAPSHOT'>
export type ActivitySnapshotEvent = EventOf<'ACTIVITY_SNAPSHOT'>
export type ActivityDeltaEvent = EventOf<'ACTIVITY_DELTA'>
export type RawEvent = EventOf<'RAW'>
export type CustomEvent = EventOf<'CUSTOM'>
export type RunStartedEvent = EventOf<'RUN_STARTED'>
export type RunErrorEvent = EventOf<'RUN_ERROR'>
export type StepStartedEvent = EventOf<'STEP_STARTED'>
export type StepFinishedEvent = EventOf<'STEP_FINISHED'>
export type ReasoningStartEvent = EventOf<'REASONING_START'>
export type ReasoningEndEvent = EventOf<'REASONING_END'>
export type ReasoningMessageStartEvent = EventOf<'REASONING_MESSAGE_START'>
export type ReasoningMessageContentEvent = EventOf<'REASONING_MESSAGE_CONTENT'>
export type ReasoningMessageEndEvent = EventOf<'REASONING_MESSAGE_END'>
export type ReasoningMessageChunkEvent = EventOf<'REASONING_MESSAGE_CHUNK'>
export type ReasoningEncryptedValueEvent = EventOf<'REASONING_ENCRYPTED_VALUE'>
export type SubagentStartedEvent = EventOf<'SUBAGENT_STARTED'>
export type SubagentFinishedEvent = EventOf<'SUBAGENT_FINISHED'>
export type SubagentErrorEvent = EventOf<'SUBAGENT_ERROR'>
