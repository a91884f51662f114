export { ChatProvider, type ChatProviderProps } from './provider.js'
export type { MaybeAccessor } from './reading.js'
export { type UseChat, type UseChatOptions, useChat, useChatClient } from './use-chat.js'
export { type In, useChatSelector, useMessage, useMessageIds, usePendingApprovals } from './use-message.js'
