import { ChatClient, type Connection, clientTool, type InferTools, toolDefinition } from '@countersign/client'
import type { Message } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import {
  ChatProvider,
  provideChat,
  useChat,
  useChatClient,
  useChatSelector,
  useMessage,
  usePendingApprovals,
} from '@countersign/vue'
import { expectTypeOf } from 'vitest'
import { h, ref, shallowRef } from 'vue'
import { z } from 'zod'

declare const connection: Connection

const deleteFile = toolDefinition({
  name: 'delete_file',
  description: 'Deletes a file.',
  input: z.object({ path: z.string() }),
  output: z.object({ deleted: z.boolean() }),
})
const pickColor = clientTool({
  name: 'pick_color',
  description: 'Lets the person pick a color.',
  input: z.object({ from: z.array(z.string()) }),
  execute: ({ from }) => ({ color: from[0] ?? 'none' }),
})
type Tools = InferTools<[typeof deleteFile, typeof pickColor]>

// S4.36: a setup is compiled, not run.
export function typed() {
  const { messages, status, sendMessage, addToolApprovalResponse } = useChat<Tools>({
    connection,
    onApprovalRequest: (request) => {
      if (request.toolName === 'delete_file') expectTypeOf(request.input).toEqualTypeOf<{ path: string }>()
    },
  })
  for (const { parts } of messages.value) {
    for (const part of parts) {
      if (part.type !== 'tool-call') continue
      expectTypeOf(part.name).toEqualTypeOf<'delete_file' | 'pick_color'>()
      if (part.name === 'delete_file') {
        expectTypeOf(part.input).toEqualTypeOf<{ path: string } | undefined>()
        expectTypeOf(part.output).toEqualTypeOf<{ deleted: boolean } | undefined>()
        // @ts-expect-error the input of this tool has no such member
        part.input?.from
      } else {
        expectTypeOf(part.input).toEqualTypeOf<{ from: string[] } | undefined>()
        expectTypeOf(part.output).toEqualTypeOf<{ color: string } | undefined>()
      }
      // @ts-expect-error there is no such tool
      part.name === 'send_mail'
    }
  }
  // @ts-expect-error the refs are for reading
  status.value = 'ready'
  expectTypeOf(sendMessage).toEqualTypeOf<ChatClient<Tools>['sendMessage']>()

  const shared = new ChatClient<Tools>({ connection })
  expectTypeOf(useChat({ client: shared }).client.value).toEqualTypeOf<ChatClient<Tools>>()
  expectTypeOf(useChat(() => ({ client: shared })).client.value).toEqualTypeOf<ChatClient<Tools>>()
  expectTypeOf(useChatClient(shallowRef({ client: shared })).value).toEqualTypeOf<ChatClient<Tools>>()
  expectTypeOf(usePendingApprovals({ client: shared }).value[0]?.name).toEqualTypeOf<
    'delete_file' | 'pick_color' | undefined
  >()
  expectTypeOf(useMessage<Tools>(ref('m')).value?.role).toEqualTypeOf<
    'user' | 'assistant' | 'system' | undefined
  >()
  expectTypeOf(useChatSelector((chat) => chat.messages.length).value).toEqualTypeOf<number>()
  expectTypeOf(provideChat({ client: shared }).value).toEqualTypeOf<ChatClient<Tools>>()
  expectTypeOf(provideChat<Tools>(() => ({ connection })).value).toEqualTypeOf<ChatClient<Tools>>()

  // @ts-expect-error a shared client has its options already
  useChat({ client: shared, onFinish: () => {} })
  // @ts-expect-error there is no such option
  useChat({ connection, onFinnish: () => {} })
  // @ts-expect-error a provider has a client or a connection
  provideChat({ threadId: 'a' })
  // @ts-expect-error an answer has an id
  void addToolApprovalResponse({ approved: true })

  return [
    h(ChatProvider<Tools>, { client: shared }),
    h(ChatProvider<Tools>, { options: { connection } }),
    // @ts-expect-error a provider has a client or options
    h(ChatProvider<Tools>, {}),
    // @ts-expect-error not both
    h(ChatProvider<Tools>, { client: shared, options: { connection } }),
  ]
}

// F55 H29 what is stored in the form of AG-UI is not typed by the tools, and goes in all the same.
export function stored(messages: readonly Message[]) {
  const chat = useChat<Tools>({ connection, initialMessages: fromAGUIMessages(messages) })
  chat.setMessages(fromAGUIMessages(messages))
  chat.setMessages(chat.messages.value)
  new ChatClient<Tools>({ connection, initialMessages: fromAGUIMessages(messages) })
  chat.setMessages((before) => before)
}
