import { setTimeout as sleep } from 'node:timers/promises'
import { type AiSdkOptions, aiSdk } from '@countersign/ai-sdk'
import { convertToModelMessages, isStepCount, streamText, tool, type UIMessage } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import { type FetchRoute, serveFetch } from './fetch-server.js'
import { prompts } from './our-agent.js'
import type { PeerServer } from './our-client.js'

type StreamOptions = Parameters<MockLanguageModelV4['doStream']>[0]
type StreamPart =
  Awaited<ReturnType<MockLanguageModelV4['doStream']>>['stream'] extends ReadableStream<infer Part>
    ? Part
    : never

/** A chat request as the SDK's clients send it. */
interface RouteRequest {
  readonly id: string
  readonly messages: UIMessage[]
  readonly trigger: string
  readonly messageId?: string
  readonly [more: string]: unknown
}

interface Handled {
  readonly route: FetchRoute
  /** Whom mails were sent to, in order: what really happened. */
  readonly sent: readonly string[]
  /** Bodies of the requests, in order. */
  readonly bodies: readonly RouteRequest[]
  readonly model: MockLanguageModelV4
}

export interface Route extends Handled, PeerServer {
  readonly api: string
}

export interface RouteOptions {
  /** As `originalMessages` of the SDK: the response names the message that it goes on with. */
  readonly persists?: boolean
  /** Approvals are signed. */
  readonly secret?: string
  /** What the model says, instead of the script of the matrix. */
  readonly stream?: (options: StreamOptions, call: number) => AsyncIterable<StreamPart> | Iterable<StreamPart>
  readonly client?: Partial<AiSdkOptions>
  /** Around the response, to break it off. */
  readonly around?: (response: Response, request: number) => Response
  /** As in the SDK's `toolApproval`. */
  readonly toolApproval?: 'user-approval' | 'approved' | 'denied'
  /** The model goes on where its reader has gone. */
  readonly goesOn?: boolean
}

/** Such a route on the loopback interface, and our client's way to it. */
export async function openRoute({ client, ...options }: RouteOptions = {}): Promise<Route> {
  const handled = aiSdkRoute(options)
  const api = `${await serveFetch(handled.route)}/api/chat`
  const connection = aiSdk({ api, ...client })
  return { ...handled, api, options: { connection }, requests: () => handled.bodies.length }
}

/** An unmodified route of the AI SDK, with a model that follows a script. */
export function aiSdkRoute(options: Omit<RouteOptions, 'client'> = {}): Handled {
  const { persists = true, secret, stream = respond, around = (response) => response } = options
  const { toolApproval = 'user-approval', goesOn = false } = options
  const sent: string[] = []
  const bodies: RouteRequest[] = []
  const replays = new Map<string, ReadableStream<string>>()
  let calls = 0
  const model = new MockLanguageModelV4({
    doStream: async (asked) => ({ stream: toStream(stream(asked, ++calls)) }),
  })
  const tools = toolsOf(sent)
  const route: FetchRoute = async (request) => {
    if (request.method === 'GET') return replayOf(replays, request.url)
    const body = (await request.json()) as RouteRequest
    bodies.push(body)
    const { messages } = body
    const result = streamText({
      model,
      tools,
      toolApproval: { send_mail: toolApproval },
      ...(secret !== undefined && { experimental_toolApprovalSecret: secret }),
      stopWhen: isStepCount(10),
      messages: await convertToModelMessages(messages, { tools }),
      ...(!goesOn && { abortSignal: request.signal }),
      onError: () => {},
    })
    const response = result.toUIMessageStreamResponse({
      ...(persists && { originalMessages: messages }),
      sendReasoning: true,
      sendSources: true,
      consumeSseStream: ({ stream: copy }) => {
        replays.set(body.id, copy)
      },
    })
    return around(response, bodies.length)
  }
  return { route, bodies, model, sent }
}

/** A response that breaks off after so many chunks. */
export function brokenAfter(response: Response, chunks: number): Response {
  const reader = response.body?.getReader()
  let left = chunks
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (left-- <= 0) {
          // what was written is on its way first
          await sleep(30)
          return controller.error(new Error('The network is gone.'))
        }
        const { value } = (await reader?.read()) ?? {}
        if (value) controller.enqueue(value)
        else controller.close()
      },
      cancel: () => reader?.cancel(),
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers: response.headers })
}

/** The whole stream again, from its beginning. */
function replayOf(replays: ReadonlyMap<string, ReadableStream<string>>, url: string): Response {
  const id = decodeURIComponent(new URL(url).pathname.split('/').at(-2) ?? '')
  const stream = replays.get(id)
  if (!stream) return new Response(null, { status: 204 })
  return new Response(stream.pipeThrough(new TextEncoderStream()), {
    headers: { 'content-type': 'text/event-stream' },
  })
}

const toolsOf = (sent: string[]) => ({
  weather: tool({
    description: 'The weather of a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => ({ city, degrees: 21 }),
  }),
  send_mail: tool({
    description: 'Sends a mail.',
    inputSchema: z.object({ to: z.string() }),
    execute: ({ to }) => {
      sent.push(to)
      return { to, state: 'sent' }
    },
  }),
  get_location: tool({
    description: 'Where the person is.',
    inputSchema: z.object({}),
    outputSchema: z.object({ place: z.string() }),
  }),
})

function toStream(parts: AsyncIterable<StreamPart> | Iterable<StreamPart>): ReadableStream<StreamPart> {
  const iterator = (async function* () {
    yield* parts
  })()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await iterator.next()
        if (done) controller.close()
        else controller.enqueue(value)
      } catch (error) {
        controller.error(error)
      }
    },
    async cancel() {
      await iterator.return(undefined)
    },
  })
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

export function finish(unified: 'stop' | 'tool-calls'): StreamPart {
  return { type: 'finish', finishReason: { unified, raw: unified }, usage }
}

export function* say(...deltas: string[]): Generator<StreamPart> {
  yield { type: 'stream-start', warnings: [] }
  yield { type: 'text-start', id: '0' }
  for (const delta of deltas) yield { type: 'text-delta', id: '0', delta }
  yield { type: 'text-end', id: '0' }
  yield finish('stop')
}

type Called = readonly [id: string, name: string, input: unknown]

function* call(...calls: readonly Called[]): Generator<StreamPart> {
  yield { type: 'stream-start', warnings: [] }
  for (const [toolCallId, toolName, input] of calls) {
    const text = JSON.stringify(input)
    yield { type: 'tool-input-start', id: toolCallId, toolName }
    yield { type: 'tool-input-delta', id: toolCallId, delta: text.slice(0, 3) }
    yield { type: 'tool-input-delta', id: toolCallId, delta: text.slice(3) }
    yield { type: 'tool-input-end', id: toolCallId }
    yield { type: 'tool-call', toolCallId, toolName, input: text }
  }
  yield finish('tool-calls')
}

const mail = (id: string, to: string): Called => [id, 'send_mail', { to }]

async function* respond({ prompt, abortSignal }: StreamOptions): AsyncGenerator<StreamPart> {
  const last = prompt.findLastIndex(({ role }) => role === 'user')
  const results = resultsOf(prompt.slice(last + 1))
  const done = results.length > 0
  switch (textOf(prompt[last])) {
    case prompts.hello:
      return yield* say('Hello, ', 'Ada.')
    case prompts.weather:
      return yield* done ? say(`It is: ${results}`) : call(['c1', 'weather', { city: 'Oslo' }])
    case prompts.mail:
      return yield* done ? say(`Done: ${results}`) : call(mail('c1', 'ada'))
    case prompts.two:
      return yield* done ? say(`Done: ${results}`) : call(mail('c1', 'ada'), mail('c2', 'bob'))
    case prompts.chain: {
      const next = [mail('c1', 'ada'), mail('c2', 'bob')][results.length]
      return yield* next ? call(next) : say(`Done: ${results}`)
    }
    case prompts.where:
      return yield* done ? say(`You are: ${results}`) : call(['c1', 'get_location', {}])
    case prompts.slow: {
      yield { type: 'stream-start', warnings: [] }
      yield { type: 'text-start', id: '0' }
      for (;;) {
        await sleep(5, undefined, abortSignal ? { signal: abortSignal } : {})
        yield { type: 'text-delta', id: '0', delta: ' well' }
      }
    }
    default:
      throw new Error('The model is out of order.')
  }
}

function textOf(message: StreamOptions['prompt'][number] | undefined): string {
  if (message?.role !== 'user') return ''
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** What the model is told of its calls. */
export function resultsOf(prompt: StreamOptions['prompt']): string[] {
  return prompt.flatMap((message) =>
    message.role === 'tool'
      ? message.content.flatMap((part) => (part.type === 'tool-result' ? [JSON.stringify(part.output)] : []))
      : [],
  )
}
