import { handleAiSdkChat, loadAiSdkChat } from '@countersign/ai-sdk/server'
import {
  createAgent,
  type Ledger,
  type ModelEvent,
  memoryLedger,
  memoryThreads,
  scriptedModel,
  tool,
  toolDefinition,
} from '@countersign/server'
import { passMacrotasks } from '@countersign/testing'
import { DefaultChatTransport, isToolUIPart, type UIMessage } from 'ai'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { PlainChat, sendAutomaticallyWhen } from './ai-sdk-chat.js'
import { call, end, said } from './model-events.js'

// Pages of the AI SDK's own client that would keep an approval or a result to themselves, without an error.

interface OpenOptions {
  /** Whether the server keeps the conversation. Default: true. */
  readonly keeps?: boolean
  /** Whether a page sends its last message alone. Default: false. */
  readonly sendsLast?: boolean
  readonly ledger?: Ledger
}

/** `replies`: what the model says, by the number of messages of the user and of its own replies to the last one. */
function open(
  replies: (users: number, replied: number) => readonly ModelEvent[] | Promise<readonly ModelEvent[]>,
  { keeps = true, sendsLast = false, ledger = memoryLedger() }: OpenOptions = {},
) {
  const ran: string[] = []
  let modelCalls = 0
  const shared = { description: 'Sends.', input: z.object({ to: z.string() }), needsApproval: true }
  const threads = memoryThreads()
  const append = threads.append
  let gone: AbortController | undefined
  threads.append = async (...given) => {
    const appended = await append(...given)
    gone?.abort()
    return appended
  }
  const agent = createAgent({
    model: scriptedModel(async function* ({ messages }) {
      modelCalls++
      const last = messages.findLastIndex(({ role }) => role === 'user')
      const users = messages.filter(({ role }) => role === 'user').length
      yield* await replies(users, messages.slice(last).filter(({ role }) => role === 'assistant').length)
    }),
    warn: () => {},
    tools: [
      tool({
        ...shared,
        name: 'send',
        execute: ({ to }) => {
          ran.push(to)
          return to
        },
      }),
      toolDefinition({ ...shared, name: 'show' }).client(() => null),
    ],
    ...(keeps && { threads }),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger },
  })
  const context = { subject: 'ada' }
  let requests = 0
  let chunks: number | undefined
  let isGone = false
  let isLeft = false
  const fetch: typeof globalThis.fetch = async (url, init) => {
    if (++requests > 20) throw new Error('too many requests')
    if (isGone) {
      isGone = false
      throw new TypeError('lost')
    }
    if (isLeft) {
      isLeft = false
      gone = new AbortController()
      const { signal } = gone
      const left = new Request(new URL(String(url), 'http://localhost/'), { ...init, signal })
      const response = await handleAiSdkChat(agent, left, { context })
      await response.text().catch(() => {})
      gone = undefined
      throw new TypeError('left')
    }
    const request = new Request(new URL(String(url), 'http://localhost/'), init)
    const response = await handleAiSdkChat(agent, request, { context, goOnFor: 10_000 })
    if (chunks === undefined) return response
    let left = chunks
    chunks = undefined
    const reader = response.body?.getReader()
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value } = (left-- > 0 ? await reader?.read() : undefined) ?? {}
        if (value) controller.enqueue(value)
        else controller.error(new TypeError('cut'))
      },
    })
    return new Response(body, response)
  }
  const page = (messages: UIMessage[] = []) => {
    const chat: PlainChat = new PlainChat({
      id: 't',
      messages,
      transport: new DefaultChatTransport({
        api: 'http://localhost/api/chat',
        fetch,
        ...(sendsLast && {
          prepareSendMessagesRequest: ({ messages, ...request }) => ({
            body: { ...request, messages: messages.slice(-1) },
          }),
        }),
      }),
      sendAutomaticallyWhen,
      onToolCall({ toolCall: { toolName, toolCallId } }) {
        if (toolName !== 'show') return
        ran.push(toolCallId)
        void chat.addToolOutput({ tool: toolName, toolCallId, output: 'shown' })
      },
    })
    return chat
  }
  const load = async (): Promise<UIMessage[]> =>
    JSON.parse(JSON.stringify(await loadAiSdkChat(agent, { ...context, chatId: 't' })))
  return {
    page,
    load,
    ran,
    /** How often the model was called. */
    modelCalls: () => modelCalls,
    /** The next response breaks off behind its first chunk, or before it. */
    breakOff: (behind = 1) => {
      chunks = behind
    },
    /** The page of the next request leaves as soon as its message is stored. */
    leave: () => {
      isLeft = true
    },
    /** The next request does not arrive. */
    lose: () => {
      isGone = true
    },
  }
}

const callsOf = ({ messages }: Pick<PlainChat, 'messages'>) =>
  messages.flatMap(({ parts }) =>
    parts.filter(isToolUIPart).map(({ toolCallId, state }) => `${toolCallId} ${state}`),
  )

async function answer(chat: PlainChat, toolCallId: string, approved: boolean): Promise<void> {
  const parts = chat.messages.flatMap(({ parts }) => parts.filter(isToolUIPart))
  const part = parts.find((one) => one.toolCallId === toolCallId)
  await chat.addToolApprovalResponse({ id: part?.approval?.id ?? '', approved })
  await settle(chat)
}

/** Until nothing is sent any more: what a page sends by itself follows a moment after it is ready. */
async function settle(chat: PlainChat): Promise<void> {
  for (let quiet = 0; quiet < 20; quiet++) {
    await passMacrotasks()
    if (/ready|error/.test(chat.status)) continue
    await expect.poll(() => chat.status).toMatch(/ready|error/)
    quiet = 0
  }
}

const both = (_: number, replied: number) =>
  replied === 0 ? [call('show', 'map'), call('send', 'bob'), end('tool_calls')] : [said('Done.'), end('stop')]

test('the output of an approved client tool is sent although another call of its step was denied', async () => {
  for (const answers of [
    ['map', 'bob'],
    ['bob', 'map'],
  ]) {
    const { page, ran, load } = open(both)
    const chat = page()
    await chat.sendMessage({ text: 'go' })
    for (const id of answers) await answer(chat, id, id === 'map')
    await settle(chat)
    const shown = ['map output-available', 'bob output-denied']
    expect([callsOf(chat), callsOf({ messages: await load() }), ran]).toEqual([shown, shown, ['map']])
    expect(chat.messages.at(-1)?.parts.at(-1)).toMatchObject({ type: 'text', text: 'Done.' })
  }
})

/** A page that was loaded after bob was denied, while the answer to map did not arrive. */
async function loadedBesideDenial() {
  const { page, load, breakOff } = open(both)
  const chat = page()
  await chat.sendMessage({ text: 'go' })
  await answer(chat, 'bob', false)
  breakOff()
  await answer(chat, 'map', true)
  const loaded = async () => callsOf({ messages: await load() })
  await expect.poll(loaded).toContain('bob approval-responded')
  return { other: page(await load()), loaded }
}

test('the same on a page that was loaded behind the denial, before the client tool ran', async () => {
  const { other, loaded } = await loadedBesideDenial()
  await answer(other, 'map', true)
  const shown = ['map output-available', 'bob output-denied']
  await expect.poll(async () => [callsOf(other), await loaded()]).toEqual([shown, shown])
})

test('a page that was loaded beside the denial sends the output by itself', async () => {
  const { other, loaded } = await loadedBesideDenial()
  await other.addToolOutput({ tool: 'show', toolCallId: 'map', output: 'shown' })
  await settle(other)
  const shown = ['map output-available', 'bob output-denied']
  expect([callsOf(other), await loaded()]).toEqual([shown, shown])
  expect(other.messages.at(-1)?.parts.at(-1)).toMatchObject({ type: 'text', text: 'Done.' })
})

/** Sends two messages, of which `lose` hurts the second, answers the request in the reply to the first, and sends what failed again. */
async function answerEarlier(
  chat: PlainChat,
  lose: () => unknown = () => {},
  approved = true,
): Promise<void> {
  await chat.sendMessage({ text: 'one' })
  lose()
  await chat.sendMessage({ text: 'two' })
  await answer(chat, 'ann', approved)
  await chat.sendMessage()
}

const asking = (users: number, replied: number) =>
  replied === 0
    ? [call('send', ['ann', 'bob'][users - 1] ?? 'eve'), end('tool_calls')]
    : [said('Done.'), end('stop')]

test('a page that was loaded before its last message was stored is told so, instead of hiding the request behind that', async () => {
  const { page, load } = open(asking)
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  const early = page(await load())
  await chat.sendMessage({ text: 'two' })
  await early.sendMessage()
  expect([early.status, early.error?.message]).toEqual([
    'error',
    'The conversation has messages that this page goes on without. Load it again.',
  ])
  expect(callsOf(early)).toEqual(['ann output-error'])
  const loaded = page(await load())
  await answer(loaded, 'bob', true)
  expect(callsOf(loaded)).toEqual(['ann output-denied', 'bob output-available'])
})

test('an empty page that asks for a conversation that is stored is told to load it', async () => {
  const { page } = open(asking)
  await page().sendMessage({ text: 'one' })
  const empty = page()
  await empty.sendMessage()
  expect(empty.status).toBe('error')
})

test('a page that was loaded before its edit was stored is told so', async () => {
  const { page, load } = open((users, replied) =>
    replied === 0 ? [said('Hello.'), end('stop')] : both(users, replied),
  )
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  const early = page(await load())
  await chat.sendMessage({ text: 'two', messageId: chat.messages[0]?.id ?? '' })
  await early.sendMessage()
  expect(early.status).toBe('error')
})

test('a page whose reply another page has replaced is told so, instead of hiding the request of the new one', async () => {
  let ids = 0
  const { page, load } = open((_, replied) =>
    replied === 0 ? [call('send', `c${++ids}`), end('tool_calls')] : [said('Done.'), end('stop')],
  )
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  const early = page(await load())
  await chat.regenerate()
  await answer(early, 'c1', true)
  expect([early.status, callsOf(early)]).toEqual(['error', ['c1 output-error']])
  const loaded = page(await load())
  await answer(loaded, 'c2', true)
  expect(callsOf(loaded)).toEqual(['c2 output-available'])
})

test('a request that the SDK sends for an answer to an older message does not show a later reply there, or hide its request', async () => {
  const { page, breakOff, load, ran } = open(asking)
  const chat = page()
  await answerEarlier(chat, breakOff)
  expect([chat.status, callsOf(chat)]).toEqual(['error', ['ann output-error']])
  const loaded = page(await load())
  await answer(loaded, 'bob', true)
  expect([callsOf(loaded), ran]).toEqual([['ann output-denied', 'bob output-available'], ['bob']])
})

test('the same while the later reply is still being written', async () => {
  let go = () => {}
  const written = new Promise<void>((resolve) => {
    go = resolve
  })
  const { page, breakOff, load } = open(async (users, replied) => {
    if (users === 2) await written
    return asking(users, replied)
  })
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  breakOff()
  await chat.sendMessage({ text: 'two' })
  await answer(chat, 'ann', true)
  const retried = chat.sendMessage()
  go()
  await retried
  expect([chat.status, callsOf(chat)]).toEqual(['error', ['ann output-error']])
  expect(callsOf({ messages: await load() })).toContain('bob approval-requested')
})

test('a message that was not sent is sent with an answer to the reply before it, whose page is told to load what is said to it', async () => {
  const { page, lose, load, ran } = open(asking)
  const chat = page()
  await answerEarlier(chat, lose)
  expect([chat.status, callsOf(chat)]).toEqual(['error', ['ann output-available']])
  const loaded = page(await load())
  expect(callsOf(loaded)).toEqual(['ann output-available', 'bob approval-requested'])
  await answer(loaded, 'bob', true)
  expect([callsOf(loaded), ran]).toEqual([
    ['ann output-available', 'bob output-available'],
    ['ann', 'bob'],
  ])
})

test('such a request ends the call of the older message without an error if the page shows all that is stored', async () => {
  const { page, ran } = open(asking)
  const chat = page()
  await answerEarlier(chat)
  expect([chat.status, callsOf(chat)]).toEqual(['ready', ['ann output-error', 'bob approval-requested']])
  await answer(chat, 'bob', true)
  expect([chat.status, callsOf(chat), ran]).toEqual([
    'ready',
    ['ann output-error', 'bob output-available'],
    ['bob'],
  ])
})

test('nor is there an error if the last message was edited on this page, and its reply is all that is stored', async () => {
  const { page } = open((users, replied) =>
    users === 1 ? asking(users, replied) : [said('Hello.'), end('stop')],
  )
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  await chat.sendMessage({ text: 'two' })
  await chat.sendMessage({
    text: 'deux',
    messageId: chat.messages.findLast(({ role }) => role === 'user')?.id ?? '',
  })
  await answer(chat, 'ann', true)
  await chat.sendMessage()
  expect([chat.status, callsOf(chat)]).toEqual(['ready', ['ann output-error']])
  await chat.sendMessage()
  expect([chat.status, chat.messages.length]).toEqual(['ready', 4])
})

test('a message whose request broke off before it ended the open requests is not answered in the reply before it', async () => {
  const { page, leave, load } = open(asking)
  const chat = page()
  await answerEarlier(chat, leave, false)
  expect([chat.status, callsOf(chat).length]).toEqual(['error', 1])
  expect(callsOf({ messages: await load() })).toContain('bob approval-requested')
})

test.each(['the message', 'all of its reply', 'all but the first chunk of its reply'])(
  'where the server keeps no conversation and %s was lost, an answer to the reply before is carried out once, and no model is called for what the page cannot show',
  async (what) => {
    const { page, lose, breakOff, modelCalls } = open(asking, { keeps: false })
    const chat = page()
    await chat.sendMessage({ text: 'one' })
    if (what === 'the message') lose()
    else breakOff(what === 'all of its reply' ? 0 : 1)
    await chat.sendMessage({ text: 'two' })
    const calls = what === 'the message' ? 1 : 2
    await expect.poll(modelCalls).toBe(calls)
    await answer(chat, 'ann', true)
    for (let retries = 0; retries < 3; retries++) await chat.sendMessage()
    expect([chat.status, chat.error?.message, modelCalls()]).toEqual([
      'error',
      'This request could only carry out answers to an earlier reply. If the last message has no reply, send it again.',
      calls,
    ])
    // the message that arrived has cancelled the request
    expect(callsOf(chat)).toEqual([`ann output-${what === 'the message' ? 'available' : 'error'}`])
    await chat.sendMessage({ text: 'three' })
    expect([chat.status, callsOf(chat).at(-1)]).toEqual(['ready', 'eve approval-requested'])
  },
)

test('a page that sends its last message alone gets the rest of a reply that broke off', async () => {
  const { page, breakOff, ran } = open(asking, { sendsLast: true })
  const chat = page()
  breakOff()
  await chat.sendMessage({ text: 'one' })
  await chat.sendMessage()
  expect([chat.status, callsOf(chat)]).toEqual(['ready', ['ann approval-requested']])
  await answer(chat, 'ann', true)
  expect([callsOf(chat), ran]).toEqual([['ann output-available'], ['ann']])
})

test('such a page is told to load the conversation once another page has gone on', async () => {
  const { page, load } = open(asking, { sendsLast: true })
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  await page(await load()).sendMessage({ text: 'two' })
  await answer(chat, 'ann', true)
  expect([chat.status, callsOf(chat)]).toEqual(['error', ['ann output-error']])
})

test('a message that is sent again because no chunk of its reply came is no edit: the page gets the reply that is stored', async () => {
  const { page, breakOff, load, ran } = open(asking)
  const chat = page()
  breakOff(0)
  await chat.sendMessage({ text: 'one' })
  await expect.poll(async () => callsOf({ messages: await load() })).toEqual(['ann approval-requested'])
  const other = page(await load())
  await answer(other, 'ann', true)
  await chat.sendMessage()
  expect([chat.status, callsOf(chat), ran]).toEqual(['ready', ['ann output-available'], ['ann']])
})

test('nor does it take away what another page has said meanwhile', async () => {
  const { page, breakOff, load } = open(asking)
  const chat = page()
  breakOff(0)
  await chat.sendMessage({ text: 'one' })
  await expect.poll(async () => callsOf({ messages: await load() })).toEqual(['ann approval-requested'])
  await page(await load()).sendMessage({ text: 'two' })
  await chat.sendMessage()
  expect(chat.status).toBe('error')
  expect(callsOf({ messages: await load() })).toEqual(['ann output-denied', 'bob approval-requested'])
})

test('nor does an edited message that is sent again bring back what it had replaced', async () => {
  const { page, breakOff, load } = open(asking)
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  breakOff(0)
  await chat.sendMessage({ text: 'uno', messageId: chat.messages[0]?.id ?? '' })
  await expect.poll(async () => JSON.stringify(await load())).toContain('uno')
  await chat.sendMessage()
  expect(JSON.stringify(await load())).toContain('uno')
  expect([chat.status, callsOf(chat)]).toEqual(['ready', callsOf({ messages: await load() })])
})

test('an edit that was lost behind an answered request is sent again as an edit', async () => {
  let ids = 0
  const { page, lose, load } = open((_, replied) =>
    replied === 0
      ? [call('send', `c${++ids}`), call('send', `c${++ids}`), end('tool_calls')]
      : [said('Done.'), end('stop')],
  )
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  await answer(chat, 'c1', true)
  lose()
  await chat.sendMessage({ text: 'uno', messageId: chat.messages[0]?.id ?? '' })
  await chat.sendMessage()
  const now = ['c3 approval-requested', 'c4 approval-requested']
  expect([chat.status, callsOf(chat), callsOf({ messages: await load() })]).toEqual(['ready', now, now])
  expect(JSON.stringify(await load())).toContain('uno')
})

test.each([{ sendsLast: true }, { sendsLast: false }])(
  'a reply that is not on the page yet never appears in the one that a request names: %o',
  async (options) => {
    const { page, lose, load } = open(asking, options)
    const chat = page()
    await answerEarlier(chat, lose)
    expect(chat.status).toBe('error')
    expect(callsOf(chat).join()).not.toContain('bob')
    expect(callsOf({ messages: await load() })).toContain('bob approval-requested')
  },
)

test('nor if the ledger failed when the message was to close the request before it', async () => {
  const ledger = memoryLedger()
  const { page, load } = open(asking, { ledger })
  const chat = page()
  await answerEarlier(chat, () => vi.spyOn(ledger, 'claim').mockRejectedValueOnce(new Error('down')))
  expect(chat.status).toBe('error')
  expect(callsOf(chat)).toEqual(['ann output-available'])
  expect(callsOf({ messages: await load() })).toContain('bob approval-requested')
})

test('a page whose message failed because of the ledger is told so', async () => {
  const ledger = memoryLedger()
  const { page } = open(asking, { ledger })
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  vi.spyOn(ledger, 'claim').mockRejectedValueOnce(new Error('down'))
  await chat.sendMessage({ text: 'two' })
  expect(chat.error?.message).toContain('The ledger failed')
})

test('a message whose reply failed does not count as replied to because an older request is answered', async () => {
  let fails = true
  const { page, load } = open((users, replied) => {
    if (users === 2 && fails) throw new Error('down')
    return asking(users, replied)
  })
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  await chat.sendMessage({ text: 'two' })
  fails = false
  await answer(chat, 'ann', true)
  await chat.sendMessage()
  expect([chat.status, callsOf(chat)]).toEqual(['error', ['ann output-error']])
  const loaded = page(await load())
  await loaded.sendMessage()
  expect([loaded.status, callsOf(loaded).at(-1)]).toEqual(['ready', 'bob approval-requested'])
})

test('a page that asks for another reply to a text that another page has edited is told so, and the edit stays', async () => {
  let ids = 0
  const { page, load } = open(() => [call('send', `c${++ids}`), end('tool_calls')])
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  const other = page(await load())
  await other.sendMessage({ text: 'uno', messageId: other.messages[0]?.id ?? '' })
  await chat.regenerate()
  expect(chat.status).toBe('error')
  expect(callsOf(chat)).toEqual([])
  expect(callsOf({ messages: await load() })).toEqual(['c2 approval-requested'])
})

test('a page that was told so is told so again, until it has loaded the conversation', async () => {
  const { page, load } = open(asking, { sendsLast: true })
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  const other = page(await load())
  await other.sendMessage({ text: 'uno', messageId: other.messages[0]?.id ?? '' })
  await chat.regenerate()
  expect(chat.status).toBe('error')
  await chat.sendMessage()
  expect(chat.status).toBe('error')
  const empty = page()
  for (let retries = 0; retries < 2; retries++) {
    await empty.sendMessage()
    expect(empty.status).toBe('error')
  }
})

const textsOf = (messages: readonly UIMessage[]) =>
  messages.flatMap(({ role, parts }) =>
    parts.flatMap((part) => (role === 'user' && part.type === 'text' ? [part.text] : [])),
  )

test('an edit that was lost is carried out with the next message', async () => {
  const { page, lose, load } = open(asking)
  const chat = page()
  await chat.sendMessage({ text: 'one' })
  lose()
  await chat.sendMessage({ text: 'uno', messageId: chat.messages[0]?.id ?? '' })
  await chat.sendMessage({ text: 'two' })
  const loaded = await load()
  expect([chat.status, textsOf(chat.messages), textsOf(loaded)]).toEqual([
    'ready',
    ['uno', 'two'],
    ['uno', 'two'],
  ])
  expect(callsOf(chat)).toEqual(callsOf({ messages: loaded }))
})

test('but another page’s edit is not taken away by the next message of a page that does not show it', async () => {
  const { page, breakOff, load } = open(asking)
  const chat = page()
  breakOff(0)
  await chat.sendMessage({ text: 'one' })
  await expect.poll(async () => callsOf({ messages: await load() })).toEqual(['ann approval-requested'])
  const other = page(await load())
  await other.sendMessage({ text: 'uno', messageId: other.messages[0]?.id ?? '' })
  await chat.sendMessage({ text: 'two' })
  expect(chat.status).toBe('error')
  expect(textsOf(await load())).toEqual(['uno'])
})
