export { type ApprovalDecided, type ApprovalHistoryEntry, approvalHistory } from './approval-history.js'
export { type JsonLinesOptions, readJsonLines } from './bytes/ndjson.js'
export { readServerSentEvents, type SseBatch, type SseEvent, type SseOptions } from './bytes/sse.js'
export type { ByteSource } from './bytes/text.js'
export { type ChatSnapshot, type ChatStatus, ChatStore, type ChatStoreOptions } from './chat-store.js'
export { isSendable, toAGUIMessages } from './conversions/to-agui.js'
export {
  type DisplayLimits,
  type DisplayOptions,
  type DisplaySegment,
  type DisplayText,
  displayJson,
  displayText,
} from './display.js'
export { type ApprovalErrorCode, CountersignError, type ErrorCode, isCountersignError } from './errors.js'
export {
  createJsonReader,
  type JsonReader,
  type JsonReaderOptions,
  type JsonReaderStatus,
} from './json/partial.js'
export type { ClientFrame, ServerFrame } from './live/frames.js'
export {
  type Answerable,
  awaitedRequests,
  canWithdraw,
  findAnswerable,
  visibleRequests,
} from './machine/approval-answer.js'
export { isRefusal, leavesOpen, readRefusal } from './machine/approval-refusal.js'
export { readResult } from './machine/call-result.js'
export { checkMessages, isMessage } from './machine/check-messages.js'
export { canRunOnClient, findClientCall } from './machine/client-calls.js'
export type {
  CallDraft,
  FinishedRun,
  InterruptDraft,
  QueuedMessage,
  RequestOptions,
  Subagent,
} from './machine/data.js'
export type { Effect, Step, WarningCode } from './machine/effects.js'
export { interrupted } from './machine/load.js'
export type {
  Answer,
  LocalEvent,
  MirrorState,
  RunEnd,
  ThreadRecord,
  ToolOutput,
} from './machine/local-event.js'
export { mirrorSteps, readMirror } from './machine/mirror.js'
export { readMessage, readMessages } from './machine/read.js'
export { readApproval, readApprovalEvent, readDelivery } from './machine/read-approval.js'
export { isThreadRecord, readRecord, restoreSteps } from './machine/record.js'
export { isRefusedWhole } from './machine/runs.js'
export {
  areAllToolsComplete,
  clientCalls,
  executingCalls,
  hasDeferredAnswer,
  hasUnsentAnswer,
  resumeEntries,
} from './machine/select.js'
export {
  type ApplyPatch,
  type ChatState,
  type ChatStateOptions,
  createChatState,
  type MoreSteps,
} from './machine/state.js'
export { step } from './machine/step.js'
export { readSubagent } from './machine/subagents.js'
export type { Constraint, MandateOffer } from './mandates.js'
export {
  type ApprovalOption,
  type DataPart,
  type Delivery,
  type EditedPreview,
  type FilePart,
  isTerminal,
  type MandateBudget,
  type MessagePart,
  type OfferedMandate,
  type PartialOutput,
  type PendingApproval,
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
  type WithOutput,
} from './messages.js'
export { type DiffHunk, type Preview, type PreviewCell, readPreview } from './preview.js'
export { printJson } from './print-json.js'
export {
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
  PROTOCOL_VERSION,
  type ReasoningMessage,
  type ResumeEntry,
  type RunAgentInput,
  type RunFinishedOutcome,
  type TokenUsage,
  type Tool,
  type ToolCall,
  type ToolMessage,
  type UnknownEvent,
  type UserMessage,
} from './protocol/events.js'
export { REDACTED, type SanitizeOptions, sanitizeArgs } from './redact.js'
export { StreamProcessor, type StreamProcessorOptions } from './stream-processor.js'
export {
  type FullProtocol,
  loadFullProtocol,
  StreamReader,
  type StreamReaderOptions,
} from './stream-reader.js'
export {
  type AnyClientTool,
  type AnyServerTool,
  type ApprovalDecision,
  type ApprovalPolicy,
  type ApprovalScope,
  type ClientTool,
  type ClientToolContext,
  clientTool,
  type Execute,
  type Finalize,
  type GateContext,
  type GrantedMandate,
  type InferTools,
  type JsonSchema,
  type MandateReplay,
  type NeedsApproval,
  type PreviewContext,
  type ServerExecute,
  type ServerTool,
  type SessionGrant,
  type StreamingExecute,
  type ToolAnnotations,
  type ToolContext,
  type ToolDefinition,
  type ToolOptions,
  type ToolQuestion,
  type ToolReply,
  tool,
  toolDefinition,
  type WritablePart,
} from './tools.js'
export {
  asString,
  frozen,
  getCountersignMetadata,
  isExactJson,
  isRecord,
  omitUndefined,
  oneOf,
  parseJson,
  readCallMetadata,
  reportRejection,
  sameJson,
  setCountersignMetadata,
  textContent,
} from './value.js'
