export { ChatProvider, type ChatProviderProps } from './provider.js'
export { useChat, useChatClient, type UseChat, type UseChatOptions } from './use-chat.js'
export { useChatSelector, useMessage, useMessageIds, usePendingApprovals, type In } from './use-message.js'
