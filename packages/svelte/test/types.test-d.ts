import { ChatClient, type Connection, clientTool, type InferTools, toolDefinition } from '@countersign/client'
import type { Message } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import {
  createChat,
  getChat,
  setChat,
  type UseChat,
  useChatClient,
  useChatSelector,
  useMessage,
  usePendingApprovals,
} from '@countersign/svelte'
import { expectTypeOf } from 'vitest'
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
  const chat = createChat<Tools>(() => ({
    connection,
    onApprovalRequest: (request) => {
      if (request.toolName === 'delete_file') expectTypeOf(request.input).toEqualTypeOf<{ path: string }>()
    },
  }))
  expectTypeOf(chat).toEqualTypeOf<UseChat<Tools>>()
  for (const { parts } of chat.messages) {
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

  const shared = new ChatClient<Tools>({ connection })
  expectTypeOf(createChat({ client: shared }).client).toEqualTypeOf<ChatClient<Tools>>()
  expectTypeOf(setChat(() => ({ client: shared }))).toEqualTypeOf<UseChat<Tools>>()
  expectTypeOf(getChat<Tools>()).toEqualTypeOf<UseChat<Tools>>()
  expectTypeOf(useChatClient({ client: shared }).current).toEqualTypeOf<ChatClient<Tools>>()
  expectTypeOf(usePendingApprovals(chat).current[0]?.name).toEqualTypeOf<
    'delete_file' | 'pick_color' | undefined
  >()
  expectTypeOf(useMessage<Tools>(() => 'm').current?.role).toEqualTypeOf<
    'user' | 'assistant' | 'system' | undefined
  >()
  expectTypeOf(useChatSelector(({ messages }) => messages.length).current).toEqualTypeOf<number>()

  // @ts-expect-error a shared client has its options already
  createChat({ client: shared, onFinish: () => {} })
  // @ts-expect-error there is no such option
  createChat({ connection, onFinnish: () => {} })
  // @ts-expect-error an answer has an id
  void chat.addToolApprovalResponse({ approved: true })
  // @ts-expect-error the fields are read only
  chat.status = 'ready'
  // @ts-expect-error a provider needs to know what to provide
  setChat()
}

// F55 H29 what is stored in the form of AG-UI is not typed by the tools, and goes in all the same.
export function stored(messages: readonly Message[]) {
  const chat = createChat<Tools>({ connection, initialMessages: fromAGUIMessages(messages) })
  chat.setMessages(fromAGUIMessages(messages))
  chat.setMessages(chat.messages)
  new ChatClient<Tools>({ connection, initialMessages: fromAGUIMessages(messages) })
  chat.setMessages((before) => before)
}
