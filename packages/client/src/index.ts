export {
  ChatClient,
  type ApprovalResponse,
  type ChatActions,
  type Inspection,
  type SendInput,
} from './client.js'
export { createChatClients, type ChatClients } from './clients.js'
export { stream, type Connection, type ConnectOptions, type EventSource } from './connections/connection.js'
export { fetchHttpStream, fetchServerSentEvents, type FetchOptions } from './connections/fetch.js'
export type { ApprovalRequest, ChatClientOptions, FinishedInfo, PendingMessageMode } from './options.js'
export type { AnswerResult, SendResult } from './results.js'
export { createSelection } from './selection.js'
export type { Notify } from './schedule.js'
export {
  clientTool,
  CountersignError,
  displayJson,
  displayText,
  isCountersignError,
  toolDefinition,
  type ChatSnapshot,
  type ChatStatus,
  type DisplayText,
  type FilePart,
  type InferTools,
  type MessagePart,
  type QueuedMessage,
  type ToolCallApproval,
  type ToolCallPart,
  type ToolCallState,
  type ToolMap,
  type UIMessage,
} from '@countersign/core'
