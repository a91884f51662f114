export { type AiSdkRequest, readAiSdkBody, readAiSdkRequest } from './server/request.js'
export {
  type AiSdkChatOptions,
  type AiSdkResponseOptions,
  handleAiSdkChat,
  toAiSdkResponse,
} from './server/response.js'
