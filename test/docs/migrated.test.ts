import { rmSync } from 'node:fs'
import { scriptedModel } from '@countersign/server'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { blockWith, folder, given, load, removed } from './migration.js'

afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

const asked: string[] = []

/** What the blocks declare as given. */
const things = {
  ...given,
  adapter: {
    kind: 'text',
    name: 'scripted',
    model: 'scripted',
    async *chatStream(input: { messages: readonly { role: string }[]; runId?: string; threadId?: string }) {
      const { messages, runId = 'run', threadId = 'thread' } = input
      const isAnswered = messages.at(-1)?.role === 'tool'
      const id = `${messages.length}`
      yield { type: 'RUN_STARTED', runId, threadId }
      if (isAnswered) {
        yield { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' }
        yield { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: 'It is gone.' }
        yield { type: 'TEXT_MESSAGE_END', messageId: id }
      } else {
        yield { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'delete_file' }
        yield { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: '{"path":"draft.txt"}' }
        yield { type: 'TOOL_CALL_END', toolCallId: id }
      }
      yield { type: 'RUN_FINISHED', runId, threadId, finishReason: isAnswered ? 'stop' : 'tool_calls' }
    },
  },
  askPerson: async (text: string) => asked.push(text) > 0,
  tellPerson: () => {},
}

const tanstack = 'docs/migrating-from-tanstack-ai.md'
const copilotKit = 'docs/migrating-from-copilotkit.md'
const answering =
  'client.subscribe(() => { for (const { approval } of client.getSnapshot().pendingApprovals) void client.addToolApprovalResponse({ id: approval.id, approved: true }) })'
const route =
  "import { createAgent, handleChat } from '@countersign/server'\nconst agent = createAgent({ model, tools: [deleteFile] })\nexport const POST = (request) => handleChat(agent, request)"

test.each([
  ['TanStack AI', blockWith(tanstack, 'chat({'), '', blockWith(tanstack, '@tanstack/ai-client'), ''],
  ['TanStack AI, moved', blockWith(tanstack, 'handleChat('), '', blockWith(tanstack, 'turnsOf('), ''],
  [
    'TanStack AI, the page moved first',
    blockWith(tanstack, 'chat({'),
    '',
    blockWith(tanstack, 'tanstack()'),
    answering,
  ],
  [
    'CopilotKit, moved',
    blockWith(copilotKit, 'needsApproval'),
    route,
    blockWith(copilotKit, 'new ChatClient('),
    '',
  ],
])(
  'the page and the route of the migration run as they are written: %s',
  async (_, server, more, page, answer) => {
    removed.length = 0
    asked.length = 0
    vi.spyOn(console, 'log').mockImplementation(() => {})
    const { POST } = await load(server, things, more)
    vi.stubGlobal('fetch', (url: string, init: RequestInit) =>
      POST(new Request(new URL(url, 'http://localhost'), init)),
    )
    const { client } = await load(page, things, `${answer}\nexport { client }`)
    await client.sendMessage('Delete the draft.')
    await vi.waitFor(() => expect(removed).toEqual(['draft.txt']))
    // whoever is asked sees the arguments
    for (const text of asked) expect(text).toContain('"path": "draft.txt"')
  },
)

test('the page of CopilotKit sends an answer to the request that was shown, also if another is shown meanwhile', async () => {
  removed.length = 0
  const dialogs: ((approved: boolean) => void)[] = []
  const two = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [{ type: 'finish', reason: 'stop' }]
      : [
          { type: 'tool-call', id: '1', name: 'delete_file', arguments: '{"path":"draft.txt"}' },
          { type: 'tool-call', id: '2', name: 'delete_file', arguments: '{"path":"report.txt"}' },
          { type: 'finish', reason: 'tool_calls' },
        ],
  )
  const both = {
    ...things,
    model: two,
    askPerson: () => new Promise<boolean>((resolve) => dialogs.push(resolve)),
  }
  const { POST } = await load(blockWith(copilotKit, 'needsApproval'), both, route)
  vi.stubGlobal('fetch', (url: string, init: RequestInit) =>
    POST(new Request(new URL(url, 'http://localhost'), init)),
  )
  const { client } = await load(blockWith(copilotKit, 'new ChatClient('), both, 'export { client }')
  await client.sendMessage('Delete both.')
  // closed elsewhere, such as in another tab
  await client.addToolApprovalResponse({
    id: client.getSnapshot().pendingApprovals[0].approval.id,
    cancel: true,
  })
  await vi.waitFor(() => expect(dialogs).toHaveLength(2))
  dialogs[0]?.(true)
  dialogs[1]?.(false)
  await vi.waitFor(() => expect(client.getSnapshot().status).toBe('ready'))
  expect(removed).toEqual([])
})

test('the page of CopilotKit says why an answer was refused, and asks again if the request is open again', async () => {
  removed.length = 0
  const dialogs: string[] = []
  const told: string[] = []
  let confirmed = 0
  const refusing = {
    ...things,
    askPerson: async (text: string) => dialogs.push(text) > 0,
    tellPerson: (text: string) => void told.push(text),
    confirm: () => ++confirmed > 1,
  }
  const confirming = route.replace('[deleteFile]', '[deleteFile], approvals: { confirm }')
  const { POST } = await load(blockWith(copilotKit, 'needsApproval'), refusing, confirming)
  vi.stubGlobal('fetch', (url: string, init: RequestInit) =>
    POST(new Request(new URL(url, 'http://localhost'), init)),
  )
  const { client } = await load(blockWith(copilotKit, 'new ChatClient('), refusing, 'export { client }')
  await client.sendMessage('Delete the draft.')
  await vi.waitFor(() => expect(removed).toEqual(['draft.txt']))
  expect(dialogs).toHaveLength(2)
  expect(told).toEqual(['Your answer was not confirmed.'])
})
