/** @jsxImportSource solid-js */
import { ChatClient, type Connection, clientTool, type InferTools, toolDefinition } from '@countersign/client'
import type { Message } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { ChatProvider, useChat, useChatSelector, useMessage, usePendingApprovals } from '@countersign/solid'
import type { Accessor } from 'solid-js'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

declare const connection: Connection
declare const threadId: Accessor<string>

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

// S4.36: a component is compiled, not run.
export function Typed() {
  const chat = useChat<Tools>(() => ({
    connection,
    threadId: threadId(),
    onApprovalRequest: (request) => {
      if (request.toolName === 'delete_file') expectTypeOf(request.input).toEqualTypeOf<{ path: string }>()
    },
  }))
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
  expectTypeOf(useChat({ client: shared }).client).toEqualTypeOf<ChatClient<Tools>>()
  expectTypeOf(useChat(() => ({ client: shared })).client).toEqualTypeOf<ChatClient<Tools>>()
  expectTypeOf(usePendingApprovals({ client: shared })()[0]?.name).toEqualTypeOf<
    'delete_file' | 'pick_color' | undefined
  >()
  expectTypeOf(usePendingApprovals(chat)()[0]?.name).toEqualTypeOf<'delete_file' | 'pick_color' | undefined>()
  expectTypeOf(useMessage<Tools>(threadId)()?.role).toEqualTypeOf<
    'user' | 'assistant' | 'system' | undefined
  >()
  expectTypeOf(useChatSelector(({ messages }) => messages.length)).toEqualTypeOf<Accessor<number>>()

  // @ts-expect-error a shared client has its options already
  useChat({ client: shared, onFinish: () => {} })
  // @ts-expect-error there is no such option
  useChat({ connection, onFinnish: () => {} })
  // @ts-expect-error an answer has an id
  void chat.addToolApprovalResponse({ approved: true })
  // @ts-expect-error the fields are read only
  chat.status = 'ready'

  return (
    <>
      <ChatProvider client={shared} />
      <ChatProvider options={{ connection, threadId: threadId() }} />
      {/* @ts-expect-error a provider has a client or options */}
      <ChatProvider />
      {/* @ts-expect-error not both */}
      <ChatProvider client={shared} options={{ connection }} />
    </>
  )
}

// F55 H29 what is stored in the form of AG-UI is not typed by the tools, and goes in all the same.
export function stored(messages: readonly Message[]) {
  const chat = useChat<Tools>({ connection, initialMessages: fromAGUIMessages(messages) })
  chat.setMessages(fromAGUIMessages(messages))
  chat.setMessages(chat.messages)
  new ChatClient<Tools>({ connection, initialMessages: fromAGUIMessages(messages) })
  chat.setMessages((before) => before)
}
