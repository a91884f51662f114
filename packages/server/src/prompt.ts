export { promptFromAGUI, toPromptMessages } from './prompt/from-ui.js'
export { fromResponseParts, toResponseParts } from './prompt/history.js'
export {
  parseApprovalRequest,
  parseApprovalResponse,
  parsePromptMessage,
  parsePromptMessages,
  parseResponsePart,
  parseStreamPart,
  parseToolMessage,
} from './prompt/parse.js'
export {
  type AssistantPart,
  type AssistantPromptMessage,
  isApprovalRequest,
  isApprovalResponse,
  type PlainPart,
  type PlainPromptMessage,
  type PromptMessage,
  type PromptPart,
  type PromptToolCall,
  type PromptToolResult,
  type ResponseInit,
  type ToolApprovalRequestPart,
  type ToolApprovalResponsePart,
  type ToolMessagePart,
  type ToolPromptMessage,
  toolApprovalRequest,
  toolApprovalResponse,
  toolMessage,
  toolResult,
} from './prompt/parts.js'
export {
  type AnyPart,
  createPartReader,
  type FinishPart,
  type PartReader,
  type PartReaderOptions,
  type ReasoningDeltaPart,
  type ResponsePart,
  type StreamPart,
  type TextDeltaPart,
} from './prompt/stream.js'
export { fromPromptMessages, type PromptConversionOptions, promptToAGUI } from './prompt/to-ui.js'
