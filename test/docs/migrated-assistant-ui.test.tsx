// @vitest-environment jsdom
import { rmSync } from 'node:fs'
import { useChat } from '@ai-sdk/react'
import {
  AssistantRuntimeProvider,
  ComposerPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
  type ToolCallMessagePartProps,
} from '@assistant-ui/react'
import { useAgUiRuntime } from '@assistant-ui/react-ag-ui'
import { useAISDKRuntime } from '@assistant-ui/react-ai-sdk'
import type { AiSdkMessage } from '@countersign/ai-sdk'
import { loadAiSdkChat } from '@countersign/ai-sdk/server'
import { type Agent, tool } from '@countersign/server'
import { cleanup, configure, fireEvent, getConfig, render, screen, waitFor } from '@testing-library/react'
import { HttpAgent } from 'ag-ui-client-0'
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  simulateReadableStream,
  type UIMessage,
} from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import type { FunctionComponent } from 'react'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { blocksOf } from './markdown.js'
import { blockWith, folder, given, load, removed } from './migration.js'

const page = 'docs/migrating-from-assistant-ui.md'

/** No test says how long something takes. */
const { asyncUtilTimeout } = getConfig()
beforeAll(() => configure({ asyncUtilTimeout: 300_000 }))
afterAll(() => {
  configure({ asyncUtilTimeout })
  rmSync(folder, { recursive: true, force: true })
})
afterEach(() => {
  cleanup()
  localStorage.clear()
  removed.length = 0
})

type Route = (request: Request) => Promise<Response>
type Routes = Readonly<Record<string, Route>>

/** What a page fetches reaches these routes. jsdom has an `AbortSignal` of its own, which a `Request` does not take. */
function serve(routes: Routes): void {
  vi.stubGlobal('fetch', async (address: string | URL, { signal: _, ...init }: RequestInit = {}) => {
    const url = new URL(address, 'http://localhost')
    const route = routes[`${init.method ?? 'GET'} ${url.pathname}`]
    return route ? route(new Request(url, init)) : new Response(null, { status: 404 })
  })
}

/** The AI SDK's route of the other page, which a page of assistant-ui begins with. `secret` signs its approval requests. */
async function routesBefore(secret: boolean): Promise<Routes> {
  vi.stubEnv('APPROVAL_SECRET', 'a secret that is long enough to sign with')
  const block = blockWith('docs/migrating-from-the-ai-sdk.md', 'streamText(')
  const code = secret ? block.code : block.code.replace(/^.*experimental_toolApprovalSecret.*\n/m, '')
  expect(code === block.code).toBe(secret)
  const { POST } = await load({ ...block, code }, { ...given, model: aiSdkModel() })
  return { 'POST /api/chat': POST }
}

function aiSdkModel(): MockLanguageModelV4 {
  const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 }
  const usage = { inputTokens: tokens, outputTokens: tokens }
  const asking = [
    { type: 'tool-call', toolCallId: '1', toolName: 'delete_file', input: '{"path":"draft.txt"}' },
    { type: 'finish', finishReason: { unified: 'tool-calls', raw: 'tool-calls' }, usage },
  ] as const
  const telling = [
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'It is gone.' },
    { type: 'text-end', id: '0' },
    { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage },
  ] as const
  return new MockLanguageModelV4({
    doStream: async ({ prompt }) => ({
      stream: simulateReadableStream({
        chunks: [
          { type: 'stream-start', warnings: [] },
          ...(prompt.at(-1)?.role === 'tool' ? telling : asking),
        ],
      }),
    }),
  })
}

async function after(): Promise<{ agent: Agent; routes: Routes }> {
  const deleteFile = tool({
    name: 'delete_file',
    description: 'Deletes one file.',
    input: z.object({ path: z.string() }),
    needsApproval: true,
    message: 'It cannot be restored.',
    execute: ({ path }) => given.removeFile(path),
  })
  const block = blockWith(page, 'handleAiSdkChat(')
  const { agent, postChat, postAgent, threadsOf } = await load(block, { ...given, deleteFile })
  const routes = { 'POST /api/chat': postChat, 'POST /api/agent': postAgent, 'GET /api/agent': threadsOf }
  return { agent, routes }
}

/** Shows an approval request, as a tool UI does. */
function ToolCall({ toolName, argsText, approval, respondToApproval, isError }: ToolCallMessagePartProps) {
  if (!approval || approval.approved !== undefined)
    return <p>{isError ? `${toolName}: not done` : toolName}</p>
  return (
    <fieldset>
      <legend>{approval.prompt}</legend>
      <pre>{argsText}</pre>
      <button type="button" onClick={() => respondToApproval({ approved: true })}>
        Approve
      </button>
      <button type="button" onClick={() => respondToApproval({ approved: false, reason: 'too risky' })}>
        Deny
      </button>
    </fieldset>
  )
}

/** What the page takes for granted: components of assistant-ui, which know no runtime. */
function Thread() {
  return (
    <ThreadPrimitive.Root>
      <ThreadPrimitive.Messages>
        {() => (
          <MessagePrimitive.Parts>
            {({ part }) => {
              if (part.type === 'text') return <p>{part.text}</p>
              return part.type === 'tool-call' ? <ToolCall {...part} /> : null
            }}
          </MessagePrimitive.Parts>
        )}
      </ThreadPrimitive.Messages>
      <ComposerPrimitive.Root>
        <ComposerPrimitive.Input />
        <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
      </ComposerPrimitive.Root>
    </ThreadPrimitive.Root>
  )
}

/** The page with this in its code. */
async function chatWith(text: string): Promise<FunctionComponent<{ threadId?: string }>> {
  const { Chat } = await load(blockWith(page, text), { Thread })
  return Chat
}

async function say(text: string): Promise<void> {
  fireEvent.change(screen.getByRole('textbox'), { target: { value: text } })
  const send = screen.getByRole('button', { name: 'Send' })
  await waitFor(() => expect(send).toHaveProperty('disabled', false))
  fireEvent.click(send)
}

async function click(name: string): Promise<void> {
  fireEvent.click(await screen.findByRole('button', { name }))
}

async function expectApprovedRun(): Promise<void> {
  expect((await screen.findByText(/draft\.txt/)).tagName).toBe('PRE')
  await click('Approve')
  await screen.findByText('It is gone.')
  expect(removed).toEqual(['draft.txt'])
}

test.each(['before', 'after'])('the page with the AI SDK runtime runs on the route %s', async (when) => {
  serve(when === 'before' ? await routesBefore(true) : (await after()).routes)
  const Chat = await chatWith('useChatRuntime(')
  render(<Chat />)
  await say('Delete the draft.')
  await expectApprovedRun()
})

test('a page with the AI SDK runtime shows an open request again after a reload', async () => {
  const { agent, routes } = await after()
  serve(routes)
  function Chat({ messages }: { messages: UIMessage[] }) {
    const chat = useChat({
      id: 'chat-1',
      messages,
      transport: new DefaultChatTransport({ api: '/api/chat' }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    })
    return (
      <AssistantRuntimeProvider runtime={useAISDKRuntime(chat)}>
        <Thread />
      </AssistantRuntimeProvider>
    )
  }
  render(<Chat messages={[]} />)
  await say('Delete the draft.')
  await screen.findByRole('button', { name: 'Approve' })
  cleanup()
  const stored: AiSdkMessage[] = await loadAiSdkChat(agent, { subject: 'ann', chatId: 'chat-1' })
  render(<Chat messages={stored as UIMessage[]} />)
  await expectApprovedRun()
})

test('a page with the AG-UI runtime runs on the route after', async () => {
  serve((await after()).routes)
  const options = {
    url: '/api/agent',
    threadId: 'thread-1',
    fetch: (url: string, init?: RequestInit) => fetch(url, init),
  }
  // its own copy of the class differs in nothing but the version
  const agent = new HttpAgent(options) as object as Parameters<typeof useAgUiRuntime>[0]['agent']
  function Chat() {
    return (
      <AssistantRuntimeProvider runtime={useAgUiRuntime({ agent })}>
        <Thread />
      </AssistantRuntimeProvider>
    )
  }
  render(<Chat />)
  await say('Delete the draft.')
  await expectApprovedRun()
})

test('components of assistant-ui over our client show an open request again after a reload', async () => {
  serve((await after()).routes)
  const Chat = await chatWith('useExternalStoreRuntime(')
  render(<Chat threadId="thread-1" />)
  await say('Delete the draft.')
  await screen.findByRole('button', { name: 'Approve' })
  cleanup()
  render(<Chat threadId="thread-1" />)
  await expectApprovedRun()
})

test('components of assistant-ui over our client send an answer that was given offline after a reload, and the tool runs once', async () => {
  const { routes } = await after()
  serve(routes)
  const Chat = await chatWith('useExternalStoreRuntime(')
  render(<Chat threadId="thread-2" />)
  await say('Delete the draft.')
  await screen.findByRole('button', { name: 'Approve' })
  serve({ ...routes, 'POST /api/agent': () => Promise.reject(new TypeError('Failed to fetch')) })
  await click('Approve')
  await screen.findByRole('button', { name: 'Retry' })
  cleanup()
  expect(removed).toEqual([])
  serve(routes)
  render(<Chat threadId="thread-2" />)
  await click('Send it')
  await screen.findByText('It is gone.')
  expect(removed).toEqual(['draft.txt'])
})

test('components of assistant-ui over our client deny a call, and nothing runs', async () => {
  serve((await after()).routes)
  const Chat = await chatWith('useExternalStoreRuntime(')
  render(<Chat threadId="thread-3" />)
  await say('Delete the draft.')
  await click('Deny')
  await screen.findByText('It is gone.')
  expect(removed).toEqual([])
})

test.each(['useChatRuntime(', 'useExternalStoreRuntime('])(
  'components of assistant-ui show the message of a request, and a denied call as not done: %s',
  async (runtime) => {
    serve((await after()).routes)
    const Chat = await chatWith(runtime)
    render(<Chat threadId="thread-5" />)
    await say('Delete the draft.')
    await screen.findByText('It cannot be restored.')
    await click('Deny')
    await screen.findByText('delete_file: not done')
  },
)

test('components of assistant-ui over our client say that an answer was refused', async () => {
  const { routes } = await after()
  serve(routes)
  const Chat = await chatWith('useExternalStoreRuntime(')
  render(<Chat threadId="thread-4" />)
  await say('Delete the draft.')
  await screen.findByRole('button', { name: 'Approve' })
  const { 'POST /api/agent': post = fetch } = routes
  const altering: Route = async (request) => {
    const body = (await request.text()).replace(/cs1\.[^"]*/g, 'cs1.aaaaaaaa.e30.AAAA')
    return post(new Request(request.url, { method: 'POST', headers: request.headers, body }))
  }
  serve({ ...routes, 'POST /api/agent': altering })
  await click('Approve')
  await screen.findByText('The server could not read this answer. Nothing was run. Ask again.')
  expect(removed).toEqual([])
})

/** The request that the page sends by hand. */
function forged(): Request {
  const { code = '' } =
    blocksOf(page).find(({ language, code }) => language === 'sh' && code.includes('curl')) ?? {}
  const [, body = ''] = / -d '([^']*)'/.exec(code) ?? []
  const headers = { 'content-type': 'application/json' }
  return new Request('http://localhost:3000/api/chat', { method: 'POST', headers, body })
}

test.each([
  ['without a secret runs', false, ['notes.txt']],
  ['with a secret refuses', true, []],
] as const)('an AI SDK route %s the forged approval of the page', async (_, secret, ran) => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  const { 'POST /api/chat': post } = await routesBefore(secret)
  await (await post?.(forged()))?.text()
  expect(removed).toEqual(ran)
})

test('our route refuses the forged approval of the page, and says so', async () => {
  const { 'POST /api/chat': post } = (await after()).routes
  expect(await (await post?.(forged()))?.text()).toContain('"code":"thread-unknown"')
  expect(removed).toEqual([])
})
