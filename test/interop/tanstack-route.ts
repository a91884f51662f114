import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AnyTextAdapter,
  type ChatMiddleware,
  chat,
  chatParamsFromRequest,
  defineInterrupt,
  mergeAgentTools,
  toolDefinition,
  toServerSentEventsResponse,
} from '@tanstack/ai'
import { z } from 'zod'
import { prompts } from './our-agent.js'

/** What makes it do what only this peer does. */
export const tanstackPrompts = { folder: 'which folder', exactly: 'where exactly am i' }

/** What the model gets and gives, as far as the script goes. */
interface ModelOptions {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly runId?: string
  readonly threadId?: string
}

type ModelChunk = Readonly<Record<string, unknown>>

export interface TanstackRoute {
  readonly sent: readonly string[]
  requests(): number
  /** A handler for `POST`, as an application would write it. */
  handle(request: Request): Promise<Response>
}

/** A route of TanStack AI with a tool that needs approval and a model that follows a script. */
export function tanstackRoute(): TanstackRoute {
  const sent: string[] = []
  let requests = 0
  let choice: string | undefined
  const folder = defineInterrupt({
    id: 'folder',
    payloadSchema: z.object({ choices: z.array(z.string()) }),
    responseSchema: z.object({ folder: z.string() }),
  })
  const askFolder: ChatMiddleware<unknown, typeof folder> = {
    name: 'ask-folder',
    onInterruptBoundary({ phase, messages }) {
      if (phase !== 'beforeModel' || choice !== undefined || saidLast(messages) !== tanstackPrompts.folder)
        return undefined
      const payload = { choices: ['logs', 'mail'] }
      const input = { key: 'k1', reason: 'input_required', message: 'Which folder?', payload }
      return { interrupts: [folder.interrupt(input)] }
    },
    onInterruptResolution(_context, resolutions) {
      for (const one of resolutions.for(folder))
        if (one.status === 'resolved') choice = String(Object(one.response).folder)
      return { toolResume: 'continue' }
    },
  }
  const locate = toolDefinition({
    name: 'locate_exactly',
    description: 'Where the person is, exactly.',
    inputSchema: z.object({}),
    needsApproval: true,
  })
  const weather = toolDefinition({
    name: 'weather',
    description: 'The weather of a city.',
    inputSchema: z.object({ city: z.string() }),
  }).server(async ({ city }) => ({ city, degrees: 21 }))
  const mail = toolDefinition({
    name: 'send_mail',
    description: 'Sends a mail.',
    inputSchema: z.object({ to: z.string() }),
    needsApproval: true,
  }).server(async ({ to }) => {
    sent.push(to)
    return { to, state: 'sent' }
  })
  return {
    sent,
    requests: () => requests,
    async handle(request) {
      requests++
      const { tools, ...params } = await chatParamsFromRequest(request)
      const abortController = new AbortController()
      const stream = chat({
        ...params,
        adapter: scriptedAdapter(() => choice),
        tools: [...mergeAgentTools([weather, mail, locate], tools)],
        interrupts: [folder],
        middleware: [askFolder],
        debug: false,
        abortController,
      })
      return toServerSentEventsResponse(stream, { abortController })
    },
  }
}

/** The route as a listener of node's own server. */
export function serveTanstack({ handle }: TanstackRoute) {
  return async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const request = new Request(`http://127.0.0.1${incoming.url}`, {
      method: 'POST',
      body: await bodyOf(incoming),
      headers: { 'content-type': 'application/json' },
    })
    const response = await handle(request).catch((thrown: unknown) => {
      if (thrown instanceof Response) return thrown
      throw thrown
    })
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    const reader = response.body?.getReader()
    outgoing.on('close', () => void reader?.cancel())
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read())
      outgoing.write(read.value)
    outgoing.end()
  }
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** A text adapter without a provider. */
function scriptedAdapter(choice: () => string | undefined): AnyTextAdapter {
  const adapter = {
    kind: 'text',
    name: 'scripted',
    model: 'scripted',
    async *chatStream({ messages, ...run }: ModelOptions): AsyncGenerator<ModelChunk> {
      const { runId = 'model-run', threadId = 'model-thread' } = run
      yield { type: 'RUN_STARTED', runId, threadId }
      const step = nextStep(messages, choice())
      yield* step.chunks
      yield { type: 'RUN_FINISHED', runId, threadId, finishReason: step.reason }
    },
    structuredOutput: async () => {
      throw new Error('Not in this script.')
    },
  }
  return adapter as unknown as AnyTextAdapter
}

interface Step {
  readonly chunks: AsyncIterable<ModelChunk> | Iterable<ModelChunk>
  readonly reason: 'stop' | 'tool_calls'
}

function nextStep(messages: ModelOptions['messages'], choice: string | undefined): Step {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const results = messages.slice(last + 1).flatMap(({ role, content }) => (role === 'tool' ? [content] : []))
  switch (textOf(messages[last]?.content)) {
    case prompts.hello:
      return say('Hello, Ada.')
    case prompts.weather:
      return results.length > 0 ? say(`It is: ${results}`) : call(['weather', { city: 'Oslo' }])
    case prompts.mail:
      return results.length > 0 ? say(`Done: ${results}`) : call(mailTo('ada'))
    case prompts.two:
      return results.length > 0 ? say(`Done: ${results}`) : call(mailTo('ada'), mailTo('bob'))
    case prompts.chain: {
      const next = ['ada', 'bob'][results.length]
      return next ? call(mailTo(next)) : say(`Done: ${results}`)
    }
    case prompts.where:
      return results.length > 0 ? say(`You are: ${results}`) : call(['get_location', {}])
    case tanstackPrompts.exactly:
      return results.length > 0 ? say(`You are: ${results}`) : call(['locate_exactly', {}])
    case tanstackPrompts.folder:
      return say(`It goes to ${choice}.`)
    case prompts.slow:
      return { chunks: saySlowly(), reason: 'stop' }
    default:
      throw new Error('The model is out of order.')
  }
}

function saidLast(messages: ModelOptions['messages']): string {
  return textOf(messages.findLast(({ role }) => role === 'user')?.content)
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  const parts: readonly { readonly content?: unknown; readonly text?: unknown }[] = Array.isArray(content)
    ? content
    : []
  return parts.map((part) => String(part.content ?? part.text ?? '')).join('')
}

type Called = readonly [name: string, input: unknown]

const mailTo = (to: string): Called => ['send_mail', { to }]
let ids = 0

function say(delta: string): Step {
  const messageId = `said-${++ids}`
  const chunks = [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
    { type: 'TEXT_MESSAGE_END', messageId },
  ]
  return { chunks, reason: 'stop' }
}

function call(...called: readonly Called[]): Step {
  const chunks = called.flatMap(([toolCallName, input]) => {
    const toolCallId = `call-${++ids}`
    return [
      { type: 'TOOL_CALL_START', toolCallId, toolCallName },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(input) },
      { type: 'TOOL_CALL_END', toolCallId },
    ]
  })
  return { chunks, reason: 'tool_calls' }
}

async function* saySlowly(): AsyncGenerator<ModelChunk> {
  const messageId = `said-${++ids}`
  yield { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }
  for (let i = 0; i < 400; i++) {
    await sleep(5)
    yield { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: ' well' }
  }
  yield { type: 'TEXT_MESSAGE_END', messageId }
}
