export type { AiSdkChunk } from './ai-sdk/chunk.js'
export { fromAiSdkMessages } from './ai-sdk/from-messages.js'
export {
  type AiSdkApproval,
  type AiSdkMessage,
  type AiSdkPart,
  type AiSdkTool,
  type AiSdkToolState,
  isToolPart,
} from './ai-sdk/message.js'
export { type AiSdkReader, type AiSdkReaderOptions, createAiSdkReader } from './ai-sdk/reader.js'
export { toAiSdkMessages } from './ai-sdk/to-messages.js'
export { type AiSdkWriter, type AiSdkWriterOptions, createAiSdkWriter } from './ai-sdk/writer.js'
