export type { ByteSource } from './bytes/text.js'
export { readJsonLines, type JsonLinesOptions } from './bytes/ndjson.js'
export { readServerSentEvents, type SseBatch, type SseEvent, type SseOptions } from './bytes/sse.js'
export { fromAGUIMessages } from './conversions/from-agui.js'
export { toAGUIMessages } from './conversions/to-agui.js'
export { displayJson, displayText, type DisplayOptions, type DisplaySegment, type DisplayText } from './display.js'
export { CountersignError, isCountersignError, type ApprovalErrorCode, type ErrorCode } from './errors.js'
export { createJsonReader, type JsonReader, type JsonReaderOptions, type JsonReaderStatus } from './json/partial.js'
export {
  jsonDepthExceeds,
  parseStrictJson,
  type StrictJsonLimits,
  type StrictJsonProblem,
  type StrictJsonResult,
} from './json/strict.js'
export type { Answer, LocalAct, ToolOutput } from './machine/acts.js'
export { findAnswerable, isRefusal, type Answerable } from './machine/approvals.js'
export type { Effect, WarningCode } from './machine/effects.js'
export { readMessage, readMessageIds, readMessages, readPendingApprovals } from './machine/read.js'
export type { RunEnd } from './machine/runs.js'
export {
  areAllToolsComplete,
  clientCalls,
  executingCalls,
  hasDeferredAnswer,
  hasUnsentAnswer,
  resumeEntries,
  visibleRequests,
} from './machine/select.js'
export { createChatState, type ApplyPatch, type CallCell, type ChatState, type FinishedRun, type InterruptCell, type QueuedMessage } from './machine/state.js'
export { step } from './machine/step.js'
export { canMove } from './machine/transitions.js'
export { isRecord, sameJson } from './machine/value.js'
export {
  isTerminal,
  type ApprovalOption,
  type DataPart,
  type Delivery,
  type FilePart,
  type MessagePart,
  type ReasoningPart,
  type SourcePart,
  type TextPart,
  type ToolCallApproval,
  type ToolCallPart,
  type ToolCallPartOf,
  type ToolCallState,
  type ToolMap,
  type ToolResultPart,
  type UIMessage,
} from './messages.js'
export {
  failed,
  fromResultContent,
  isSuccess,
  succeeded,
  toFailurePayload,
  toProviderText,
  toResultContent,
  type FailureFlag,
  type FailurePayload,
  type ToolFailure,
  type ToolOutcome,
  type ToolSuccess,
} from './outcome.js'
export {
  PROTOCOL_VERSION,
  type ActivityMessage,
  type AGUIEvent,
  type AssistantMessage,
  type ContentPart,
  type Context,
  type EventOf,
  type EventType,
  type Interrupt,
  type JsonPatch,
  type Message,
  type Metadata,
  type ReasoningMessage,
  type ResumeEntry,
  type RunAgentInput,
  type RunFinishedOutcome,
  type TokenUsage,
  type Tool,
  type ToolCall,
  type ToolMessage,
  type UserMessage,
} from './protocol/events.js'
export { createEventReader, type EventReader, type EventReaderOptions, type ReaderWarning } from './protocol/reader.js'
export { createChatStore, type ChatSnapshot, type ChatStatus, type ChatStore, type StoreOptions } from './store/store.js'
export {
  clientTool,
  tool,
  toolDefinition,
  type AnyClientTool,
  type AnyServerTool,
  type ClientTool,
  type ClientToolContext,
  type Execute,
  type GateContext,
  type InferTools,
  type JsonSchema,
  type NeedsApproval,
  type ServerTool,
  type ToolContext,
  type ToolDefinition,
  type ToolOptions,
} from './tools.js'
