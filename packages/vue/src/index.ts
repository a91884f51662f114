export { ChatProvider, type ChatProviderProps, type ChatSource, provideChat } from './provider.js'
export { type UseChat, type UseChatOptions, useChat, useChatClient } from './use-chat.js'
export { type In, useChatSelector, useMessage, useMessageIds, usePendingApprovals } from './use-message.js'
