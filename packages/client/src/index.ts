export {
  type ChatSnapshot,
  type ChatStatus,
  CountersignError,
  clientTool,
  type DisplayLimits,
  type DisplayText,
  displayJson,
  displayText,
  type EditedPreview,
  type FilePart,
  type FinishedRun,
  type GrantedMandate,
  type InferTools,
  type Interrupt,
  isCountersignError,
  type MandateReplay,
  type MessagePart,
  type OfferedMandate,
  type PartialOutput,
  type PendingApproval,
  type Preview,
  type QueuedMessage,
  type RequestOptions,
  readPreview,
  readSubagent,
  type SessionGrant,
  type Subagent,
  type ThreadRecord,
  type ToolCallApproval,
  type ToolCallPart,
  type ToolCallState,
  type ToolMap,
  toolDefinition,
  type UIMessage,
  type WithOutput,
} from '@countersign/core'
export { createActions } from './actions.js'
export { type ApprovalQueue, type ApprovalQueueSnapshot, approvalQueue } from './approval-queue.js'
export {
  type ApprovalArguments,
  type ApprovalChoice,
  type ApprovalEdit,
  type ApprovalStatus,
  type ApprovalView,
  type ApprovalViewOptions,
  type ArgumentField,
  approvalView,
  argumentFields,
  type MandateChoice,
} from './approval-view.js'
export {
  type ChatActions,
  ChatClient,
  type Inspection,
} from './client.js'
export type { FieldIssue } from './client-tools.js'
export { type ChatClients, createChatClients } from './clients.js'
export type { ApprovalCancellation, ApprovalResponse, InterruptResponse, ToolResult } from './command.js'
export { withApprovalTool } from './connections/approval-tool.js'
export {
  type Compat,
  type Connection,
  type ConnectOptions,
  type EventSource,
  type LiveAnswers,
  type RunCursor,
  stream,
} from './connections/connection.js'
export {
  type Endpoint,
  type FetchOptions,
  fetchHttpStream,
  fetchServerSentEvents,
  type PreparedRequest,
  type ServerSentEventsOptions,
} from './connections/fetch.js'
export { withGrants } from './connections/grants.js'
export { postAnswers } from './connections/post-answers.js'
export { previewEdits } from './connections/previews.js'
export { type NextStep, nextStep } from './next-step.js'
export type { Observation, Observer } from './observation.js'
export type {
  ApprovalRequest,
  BusyMessageMode,
  ChatClientOptions,
  CheckResponse,
  FinishedInfo,
  PendingMessageMode,
} from './options.js'
export type { InitialThread, Persistence, Persistent } from './persistence/persistence.js'
export { type PreviewLine, type PreviewView, type PreviewViewOptions, previewView } from './preview-view.js'
export type { AnswerResult, SendResult } from './results.js'
export type { Notify } from './schedule.js'
export { createSelection } from './selection.js'
export type { SendInput, SendOptions } from './send-input.js'
export type { TabHost, TabLink, Tabs } from './tabs/link.js'
export { type Turn, turnsOf } from './turns.js'
