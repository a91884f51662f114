// @vitest-environment jsdom
import { rmSync } from 'node:fs'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { simulateReadableStream } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { blockWith, folder, given, load, removed } from './migration.js'

const page = 'docs/migrating-from-assistant-ui.md'

afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => {
  cleanup()
  removed.length = 0
})

type Route = (request: Request) => Promise<Response>

/** What the page fetches reaches these routes. jsdom has an `AbortSignal` of its own, which a `Request` does not take. */
function serve(routes: Readonly<Record<string, Route>>): void {
  vi.stubGlobal('fetch', async (address: string | URL, { signal: _, ...init }: RequestInit = {}) => {
    const url = new URL(address, 'http://localhost')
    const route = routes[`${init.method ?? 'GET'} ${url.pathname}`]
    return route ? route(new Request(url, init)) : new Response(null, { status: 404 })
  })
}

/** The AI SDK's route of the other page, which the pages of assistant-ui begin with. */
async function routeBefore(): Promise<Route> {
  vi.stubEnv('APPROVAL_SECRET', 'a secret that is long enough to sign with')
  const usage = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 }
  const model = new MockLanguageModelV4({
    doStream: async ({ prompt }) => {
      const isAnswered = prompt.at(-1)?.role === 'tool'
      const reason = isAnswered ? ('stop' as const) : ('tool-calls' as const)
      return {
        stream: simulateReadableStream({
          chunks: [
            { type: 'stream-start', warnings: [] },
            ...(isAnswered
              ? ([
                  { type: 'text-start', id: '0' },
                  { type: 'text-delta', id: '0', delta: 'It is gone.' },
                  { type: 'text-end', id: '0' },
                ] as const)
              : ([
                  { type: 'tool-call', toolCallId: '1', toolName: 'delete_file', input: '{"path":"draft.txt"}' },
                ] as const)),
            {
              type: 'finish',
              finishReason: { unified: reason, raw: reason },
              usage: { inputTokens: usage, outputTokens: usage },
            },
          ],
        }),
      }
    },
  })
  const block = blockWith('docs/migrating-from-the-ai-sdk.md', 'streamText(')
  const { POST } = await load(block, { ...given, model })
  return POST
}

async function routesAfter(): Promise<Readonly<Record<string, Route>>> {
  const { postChat, postAgent, getAgent } = await load(blockWith(page, 'handleAiSdkChat('))
  return { 'POST /api/chat': postChat, 'POST /api/agent': postAgent, 'GET /api/agent': getAgent }
}

async function chat(text: string) {
  await load(blockWith(page, 'function Thread('))
  const { Chat } = await load(blockWith(page, text))
  return Chat
}

async function say(text: string): Promise<void> {
  fireEvent.change(screen.getByRole('textbox'), { target: { value: text } })
  const send = screen.getByRole('button', { name: 'Send' })
  await waitFor(() => expect(send).toHaveProperty('disabled', false))
  fireEvent.click(send)
}

test.each(['before', 'after'])('the page with the AI SDK runtime runs as it is written: the route %s', async (when) => {
  const routes = when === 'after' ? await routesAfter() : { 'POST /api/chat': await routeBefore() }
  serve(routes)
  const Chat = await chat('useChatRuntime(')
  render(<Chat />)
  await say('Delete the draft.')
  fireEvent.click(await screen.findByRole('button', { name: 'Approve' }))
  await waitFor(() => expect(removed).toEqual(['draft.txt']))
  await screen.findByText('It is gone.')
})

test('the components of assistant-ui over our client run as they are written, and a request survives a reload', async () => {
  serve(await routesAfter())
  const Chat = await chat('useExternalStoreRuntime(')
  render(<Chat threadId="t1" />)
  await say('Delete the draft.')
  await screen.findByRole('button', { name: 'Approve' })
  cleanup()
  render(<Chat threadId="t1" />)
  fireEvent.click(await screen.findByRole('button', { name: 'Approve' }))
  await waitFor(() => expect(removed).toEqual(['draft.txt']))
  await screen.findByText('It is gone.')
})
