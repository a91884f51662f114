/** Routes of the AI SDK for our client, and its messages and streams to ours and back. */
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
