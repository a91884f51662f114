import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai'
import type { PeerClient, PeerOptions, PeerQuestion } from './their-client.js'

/** A chat of the AI SDK, whichever framework holds its state. */
export type AnyChat = Pick<
  AbstractChat<UIMessage>,
  'messages' | 'status' | 'error' | 'sendMessage' | 'addToolApprovalResponse' | 'stop'
>

/** As the SDK's documentation says for approvals and client tools: sends once each request is answered, and once each call has its output. */
export const sendAutomaticallyWhen = (state: { readonly messages: UIMessage[] }): boolean =>
  lastAssistantMessageIsCompleteWithApprovalResponses(state) ||
  lastAssistantMessageIsCompleteWithToolCalls(state)

/** As its documentation has it, with both predicates: an application with approvals and client tools needs both. */
export function chatInit(
  { url, locate }: PeerOptions,
  fetch: typeof globalThis.fetch,
  messages: UIMessage[],
  current: () => Pick<AbstractChat<UIMessage>, 'addToolOutput'>,
): ChatInit<UIMessage> {
  return {
    id: 'thread-1',
    messages,
    transport: new DefaultChatTransport({ api: url, fetch }),
    sendAutomaticallyWhen,
    onToolCall({ toolCall: { toolName, toolCallId } }) {
      if (toolName !== 'get_location') return
      void current().addToolOutput({ tool: toolName, toolCallId, output: locate() })
    },
  }
}

/** The same state as in every binding of the SDK, without a framework around it. */
class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = 'ready'
  error: Error | undefined = undefined
  messages: UIMessage[]

  constructor(messages: UIMessage[]) {
    this.messages = messages
  }

  pushMessage = (message: UIMessage) => {
    this.messages = [...this.messages, message]
  }

  popMessage = () => {
    this.messages = this.messages.slice(0, -1)
  }

  replaceMessage = (index: number, message: UIMessage) => {
    this.messages = this.messages.with(index, structuredClone(message))
  }

  snapshot = <T>(thing: T): T => structuredClone(thing)
}

export class PlainChat extends AbstractChat<UIMessage> {
  constructor(init: ChatInit<UIMessage>) {
    super({ ...init, state: new PlainState(init.messages ?? []), id: init.id ?? 'thread-1' })
  }
}

/** `DefaultChatTransport` under the SDK's own chat, as the person sees it. */
export async function plainChatClient(options: PeerOptions, stored: UIMessage[] = []): Promise<PeerClient> {
  const chat: PlainChat = new PlainChat(chatInit(options, fetch, stored, () => chat))
  return chatClient(
    () => chat,
    (kept) => plainChatClient(options, kept),
  )
}

/** `change` surrounds what changes the chat: React wants to know. */
export function chatClient(
  chat: () => AnyChat,
  reopen: (stored: UIMessage[]) => Promise<PeerClient>,
  change: (act: () => Promise<unknown>) => Promise<unknown> = (act) => act(),
): PeerClient {
  const parts = () =>
    chat().messages.flatMap((message) => (message.role === 'assistant' ? message.parts : []))
  const calls = () => parts().filter(isToolUIPart)
  const pending = (): PeerQuestion[] =>
    calls().flatMap((part) =>
      part.state === 'approval-requested'
        ? [{ id: part.approval.id, tool: getToolName(part), input: part.input }]
        : [],
    )
  const errors: string[] = []

  /** Nothing is under way, and nothing that was done leads to more. */
  async function idle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet++) {
      await change(() => new Promise((resolve) => setTimeout(resolve, 5)))
      const { status } = chat()
      if (status === 'submitted' || status === 'streaming') quiet = -1
    }
    const { error } = chat()
    if (error && !errors.includes(error.message)) errors.push(error.message)
  }

  return {
    async say(text) {
      await change(() => chat().sendMessage({ text }))
      await idle()
    },
    pending,
    async answer(...answers) {
      const open = pending()
      await change(() =>
        Promise.all(
          open.map(async ({ id }, index) => {
            const { approved = false, reason } = answers[index] ?? {}
            await chat().addToolApprovalResponse({ id, approved, ...(reason !== undefined && { reason }) })
          }),
        ),
      )
      await idle()
    },
    said: () =>
      parts()
        .flatMap((part) => (part.type === 'text' ? [part.text] : []))
        .join(' '),
    results: () =>
      Object.fromEntries(
        calls().flatMap((part) =>
          part.state === 'output-available' ? [[part.toolCallId, JSON.stringify(part.output)]] : [],
        ),
      ),
    errors: () => errors,
    abort: () => void chat().stop(),
    reload: () => reopen(JSON.parse(JSON.stringify(chat().messages))),
  }
}
