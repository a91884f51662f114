/** Connects the client to AI SDK routes, and converts AI SDK messages and streams in both directions. */
export type { AiSdkChunk } from './chunk.js'
export { type AiSdkOptions, aiSdk } from './connection.js'
export { fromAiSdkMessages } from './from-messages.js'
export {
  type AiSdkApproval,
  type AiSdkMessage,
  type AiSdkPart,
  type AiSdkTool,
  type AiSdkToolState,
  isToolPart,
} from './message.js'
export { type AiSdkReader, type AiSdkReaderOptions, createAiSdkReader } from './reader.js'
export { toAiSdkMessages } from './to-messages.js'
export { type AiSdkWriter, type AiSdkWriterOptions, createAiSdkWriter } from './writer.js'
