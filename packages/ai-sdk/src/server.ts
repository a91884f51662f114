export { type AiSdkRequest, readAiSdkBody, readAiSdkRequest } from './server/request.js'
export {
  type AiSdkChatOptions,
  type AiSdkResponseOptions,
  handleAiSdkChat,
  resumeAiSdkChat,
  toAiSdkResponse,
} from './server/response.js'
export { loadAiSdkChat } from './server/thread.js'
