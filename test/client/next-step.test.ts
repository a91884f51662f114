import { createServer } from 'node:http'
import {
  ChatClient,
  type FetchOptions,
  fetchServerSentEvents,
  nextStep,
  type ToolCallPart,
  type UIMessage,
} from '@countersign/client'
import { type ApprovalErrorCode, CountersignError } from '@countersign/core'
import { type Agent, createAgent, type Ledger, memoryLedger, scriptedModel, tool } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { listening } from '../engine/listening.js'

/** A real server on loopback, and what a test turns about it between a question and its answer. */
class World {
  user = 'ann'
  /** Milliseconds that the server's clock is ahead. */
  ahead = 0
  version = 'first'
  ledgerIsDown = false
  /** The tool ends once this has. */
  gate: Promise<void> | undefined
  started = 0
  /** The HTTP status of every request, without asking the agent. */
  status: number | undefined
  readonly runs: string[] = []
  agent = newAgent(this)
  url = ''

  async open(): Promise<this> {
    const context = () => ({ subject: this.user })
    const server = createServer((request, response) => {
      if (this.status !== undefined) return response.writeHead(this.status).end()
      return toNodeHandler(this.agent, { context })(request, response)
    })
    this.url = `http://${await listening(server)}/`
    return this
  }

  /** As after a restart: the ledger in memory is lost. */
  restart(): void {
    this.agent = newAgent(this)
  }

  chat(options: FetchOptions = {}, initialMessages: readonly UIMessage[] = []): ChatClient {
    const connection = fetchServerSentEvents(this.url, options)
    const client = new ChatClient({ connection, threadId: 'thread', initialMessages: [...initialMessages] })
    onTestFinished(client.dispose)
    return client
  }
}

function newAgent(world: World): Agent {
  const now = () => Date.now() + world.ahead
  const sender = (name: string, timeout?: number) =>
    tool({
      name,
      description: 'Sends a mail.',
      input: z.object({ to: z.string() }),
      needsApproval: true,
      allowEdits: true,
      bind: () => world.version,
      mandates: () => [
        {
          ...{ id: 'none', label: 'Send for 1 EUR', where: [] },
          budget: { field: 'price', total: 1, unit: 'EUR' },
        },
      ],
      timeout,
      execute: async ({ to }) => {
        world.started++
        await world.gate
        world.runs.push(to)
        return timeout === undefined ? 'sent' : new Promise<string>(() => {})
      },
    })
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role !== 'user') return [{ type: 'finish', reason: 'stop' }]
    const name = JSON.stringify(last.content).includes('slowly') ? 'send_slowly' : 'send'
    const call = { type: 'tool-call' as const, id: `c${messages.length}`, name, arguments: '{"to":"team"}' }
    return [call, { type: 'finish', reason: 'tool_calls' }]
  })
  const secret = 'a secret of these tests, more than 32 bytes'
  const ledger = breakable(memoryLedger({ now }), world)
  const tools = [sender('send'), sender('send_slowly', 20)]
  return createAgent({
    model,
    tools,
    approvals: { secret, ledger, wait: 200 },
    now,
    warn: () => {},
    onError: () => {},
  })
}

function breakable(ledger: Ledger, world: World): Ledger {
  return new Proxy(ledger, {
    get(target, key, receiver) {
      const value: unknown = Reflect.get(target, key, receiver)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) =>
        world.ledgerIsDown ? Promise.reject(new Error('down')) : Reflect.apply(value, target, args)
    },
  })
}

function lastCall(client: ChatClient): ToolCallPart {
  const calls = client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'))
  const call = calls.at(-1)
  if (call === undefined) throw new Error('There is no call.')
  return call
}

function approve(client: ChatClient, input?: unknown) {
  const id = lastCall(client).approval?.id ?? ''
  return client.addToolApprovalResponse({ id, approved: true, ...(input !== undefined && { input }) })
}

/** Brings one code about between a question and its answer; gives the client that answered. */
const provoked: Readonly<Record<ApprovalErrorCode, (world: World) => Promise<ChatClient>>> = {
  'approval-malformed': async (world) => {
    // what takes part of a token away on its way
    const fetch: typeof globalThis.fetch = (url, init) => {
      const body = String(init?.body).replace(/"token":"([^"]{40})[^"]*"/g, '"token":"$1"')
      return globalThis.fetch(url, { ...init, body })
    }
    const client = await asked(world, { fetch })
    await approve(client)
    return client
  },
  'approval-edit-invalid': async (world) => {
    const client = await asked(world)
    await approve(client, { to: ['not', 'a', 'text'] })
    return client
  },
  'approval-mandate-refused': async (world) => {
    const client = await asked(world)
    const id = lastCall(client).approval?.id ?? ''
    await client.addToolApprovalResponse({ id, approved: true, mandate: 'none' })
    return client
  },
  'request-refused': async (world) => {
    const client = await asked(world)
    world.status = 413
    await approve(client)
    world.status = undefined
    return client
  },
  'approval-not-found': async (world) => {
    const client = await asked(world)
    world.restart()
    await approve(client)
    return client
  },
  'approval-not-yours': async (world) => {
    const client = await asked(world)
    world.user = 'bob'
    await approve(client)
    return client
  },
  'approval-tampered': async (world) => {
    let altered = false
    const fetch: typeof globalThis.fetch = (url, init) => {
      const body = altered ? String(init?.body).replace(/team/g, 'everybody') : init?.body
      return globalThis.fetch(url, { ...init, body: body ?? null })
    }
    const client = await asked(world, { fetch })
    altered = true
    await approve(client)
    return client
  },
  'approval-expired': async (world) => {
    const client = await asked(world)
    world.ahead = 2 * 24 * 60 * 60 * 1000
    expect(await approve(client)).toEqual({ status: 'expired' })
    return client
  },
  'approval-stale': async (world) => {
    const client = await asked(world)
    world.version = 'second'
    await approve(client)
    return client
  },
  'approval-changed': async (world) => {
    const fetch: typeof globalThis.fetch = async (url, init) => {
      const response = await globalThis.fetch(url, init)
      const text = await response.text()
      return new Response(text.replace('"input":{"to":"team"}', '"input":{"to":"everybody"}'), response)
    }
    const client = await asked(world, { fetch })
    expect(await approve(client)).toEqual({ status: 'closed', reason: 'approval-changed' })
    return client
  },
  'approval-conflict': async (world) => {
    const client = await asked(world)
    const elsewhere = world.chat({}, client.getSnapshot().messages)
    await elsewhere.addToolApprovalResponse({ id: lastCall(client).approval?.id ?? '', approved: false })
    await approve(client)
    return client
  },
  'approval-interrupted': async (world) => {
    const client = await asked(world, {}, 'slowly')
    await approve(client)
    world.runs.length = 0
    return client
  },
  'ledger-unavailable': async (world) => {
    const client = await asked(world)
    world.ledgerIsDown = true
    expect(await approve(client)).toMatchObject({ status: 'refused', code: 'ledger-unavailable' })
    world.ledgerIsDown = false
    return client
  },
  'call-running': async (world) => {
    const first = await asked(world)
    const client = world.chat({}, first.getSnapshot().messages)
    let open = () => {}
    world.gate = new Promise((resolve) => {
      open = resolve
    })
    const carried = approve(first)
    await expect.poll(() => world.started).toBe(1)
    expect(await approve(client)).toMatchObject({ status: 'refused', code: 'call-running' })
    expect(client.getSnapshot().error).toMatchObject({ code: 'run-error', data: { code: 'call-running' } })
    onTestFinished(async () => void (await carried))
    // once the test has looked at what was said meanwhile
    setTimeout(open, 0)
    return client
  },
}

async function asked(world: World, options?: FetchOptions, text = 'go'): Promise<ChatClient> {
  const client = world.chat(options)
  await client.sendMessage(text)
  expect(lastCall(client).name).toBe(text === 'go' ? 'send' : 'send_slowly')
  return client
}

test.each(Object.entries(provoked))(
  '%s over HTTP: the call tells the step, and the step helps',
  async (code, provoke) => {
    const world = await new World().open()
    const client = await provoke(world)
    const step = nextStep(lastCall(client))
    expect(step).toBe(nextStep(code as ApprovalErrorCode))
    expect(world.runs).toEqual([])
    switch (step?.next) {
      case 'retry':
        await client.retry()
        expect(lastCall(client)).toMatchObject({ state: 'complete', output: 'sent' })
        expect(nextStep(lastCall(client))).toBeUndefined()
        return expect(world.runs).toEqual(['team'])
      case 'correct':
        expect(await approve(client, { to: 'them' })).toEqual({ status: 'sent' })
        return expect(world.runs).toEqual(['them'])
      case 'ask-again':
      case 'check':
        await client.sendMessage('again')
        return expect(client.getSnapshot().pendingApprovals).toHaveLength(1)
      case 'sign-in':
        world.user = 'ann'
        expect(await approve(client)).toEqual({ status: 'sent' })
        return expect(world.runs).toEqual(['team'])
      case 'reload':
        // What the answer that stands led to (F52).
        return expect(lastCall(client).state).toBe('denied')
      default:
        return expect.fail(`${code} leads nowhere`)
    }
  },
)

test('signed out when answering: the answer is kept, and is sent with retry', async () => {
  const world = await new World().open()
  const client = await asked(world)
  world.status = 401
  const result = await approve(client)
  expect(nextStep(result)).toMatchObject({ state: 'kept', next: 'sign-in' })
  world.status = undefined
  await client.retry()
  expect(world.runs).toEqual(['team'])
})

test('answered before in another tab, by what the answer resolves with', async () => {
  const world = await new World().open()
  const client = await asked(world)
  const [first, second] = await Promise.all([approve(client), approve(client)])
  expect(nextStep(first)).toBeUndefined()
  expect(nextStep(second)).toMatchObject({ state: 'unused', next: 'none' })
  expect(world.runs).toEqual(['team'])
})

test('what nextStep says names no button: a page calls it "Retry" beside an error, and "Send it" after a reload', () => {
  const kept = (['ledger-unavailable', 'call-running'] as const).map((code) => nextStep(code))
  const error = new CountersignError('connection-failed', 'No response.')
  const said = [...kept, nextStep({ status: 'failed', error })].map((step) => [step?.next, step?.message])
  expect(said.length).toBe(3)
  for (const [next, message] of said) {
    expect(next).toBe('retry')
    expect(message).not.toMatch(/Retry/)
  }
})
