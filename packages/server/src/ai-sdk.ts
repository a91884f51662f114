export { type AiSdkRequest, readAiSdkBody, readAiSdkRequest } from './ai-sdk/request.js'
export {
  type AiSdkChatOptions,
  type AiSdkResponseOptions,
  handleAiSdkChat,
  toAiSdkResponse,
} from './ai-sdk/response.js'
