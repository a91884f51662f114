import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  type ModelEvent,
  type ModelMessage,
  type ModelRequest,
  scriptedModel,
  tool,
} from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { z } from 'zod'
import { listening } from '../engine/listening.js'

/** What the person says to make the model do what a row is about. */
export const prompts = {
  hello: 'hello',
  weather: 'weather',
  mail: 'mail ada',
  two: 'mail ada and bob',
  chain: 'mail ada, then bob',
  where: 'where am i',
  fail: 'fail',
  slow: 'slow',
} as const

export interface OurAgent {
  readonly url: string
  /** Whom mails were sent to, in order: what really happened. */
  readonly sent: readonly string[]
  /** What the model was asked, in order. */
  readonly asked: readonly ModelRequest[]
  /** Bodies of the requests, in order. */
  readonly requests: readonly Readonly<Record<string, unknown>>[]
  /** Resolves when the model has begun to speak slowly. */
  readonly speaking: Promise<void>
  /** Resolves when the model was stopped while it spoke. */
  readonly stopped: Promise<void>
}

/** Puts an agent on the loopback interface and says where. `onRequest` is told the body of each request. */
export type Serve = (
  agent: Agent,
  onRequest: (body: Readonly<Record<string, unknown>>) => void,
) => Promise<string>

const serveAgUi: Serve = async (agent, onRequest) => {
  const handle = toNodeHandler(agent, {
    context: () => ({ subject: 'person-1' }),
    prepare: (input) => {
      onRequest({ ...input })
      return input
    },
  })
  return `http://${await listening(createServer(handle))}/`
}

/** Our server on the loopback interface, with a model that follows a script, until the test has ended. */
export async function openAgent(
  serve: Serve = serveAgUi,
  tools: AgentOptions['tools'] = [],
): Promise<OurAgent> {
  const sent: string[] = []
  const [speaking, begin] = signal()
  const [stopped, stop] = signal()
  const model = scriptedModel((request, options) => respond(request, options.signal, begin, stop))
  const requests: Readonly<Record<string, unknown>>[] = []
  const all = [weather, mailTool(sent), ...(tools ?? [])]
  const agent = createAgent({ model, tools: all, onError: () => {}, warn: () => {} })
  const url = await serve(agent, (body) => requests.push(body))
  return { url, sent, requests, speaking, stopped, asked: model.requests }
}

const weather = tool({
  name: 'weather',
  description: 'The weather of a city.',
  input: z.object({ city: z.string() }),
  execute: ({ city }) => ({ city, degrees: 21 }),
})

const mailTool = (sent: string[]) =>
  tool({
    name: 'send_mail',
    description: 'Sends a mail.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    allowEdits: true,
    execute: ({ to }) => {
      sent.push(to)
      return { to, state: 'sent' }
    },
  })

function signal(): [Promise<void>, () => void] {
  let fire = () => {}
  const fired = new Promise<void>((resolve) => {
    fire = resolve
  })
  return [fired, fire]
}

/** The script: by what the person said last, and the results since. */
async function* respond(
  { messages }: ModelRequest,
  stop: AbortSignal,
  onSpeaking: () => void,
  onStopped: () => void,
): AsyncGenerator<ModelEvent> {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const results = messages.slice(last + 1).flatMap(resultsOf)
  switch (textOf(messages[last])) {
    case prompts.hello:
      return yield* say('Hello, Ada.')
    case prompts.weather:
      return yield* results.length > 0 ? say(`It is: ${results}`) : call(['c1', 'weather', { city: 'Oslo' }])
    case prompts.mail:
      return yield* results.length > 0 ? say(`Done: ${results}`) : call(mail('c1', 'ada'))
    case prompts.two:
      return yield* results.length > 0 ? say(`Done: ${results}`) : call(mail('c1', 'ada'), mail('c2', 'bob'))
    case prompts.chain: {
      const next = [mail('c1', 'ada'), mail('c2', 'bob')][results.length]
      return yield* next ? call(next) : say(`Done: ${results}`)
    }
    case prompts.where:
      return yield* results.length > 0 ? say(`You are: ${results}`) : call(['c1', 'get_location', {}])
    case prompts.slow:
      return yield* saySlowly(stop, onSpeaking, onStopped)
    default:
      throw new Error('The model is out of order.')
  }
}

type Called = readonly [id: string, name: string, input: unknown]

const mail = (id: string, to: string): Called => [id, 'send_mail', { to }]

function* say(delta: string): Generator<ModelEvent> {
  yield { type: 'text-delta', delta }
  yield { type: 'finish', reason: 'stop' }
}

function* call(...calls: readonly Called[]): Generator<ModelEvent> {
  for (const [id, name, input] of calls)
    yield { type: 'tool-call', id, name, arguments: JSON.stringify(input) }
  yield { type: 'finish', reason: 'tool_calls' }
}

async function* saySlowly(
  stop: AbortSignal,
  onSpeaking: () => void,
  onStopped: () => void,
): AsyncGenerator<ModelEvent> {
  yield { type: 'text-delta', delta: 'Well' }
  onSpeaking()
  try {
    for (;;) {
      await sleep(5, undefined, { signal: stop })
      yield { type: 'text-delta', delta: ' well' }
    }
  } finally {
    onStopped()
  }
}

function textOf(message: ModelMessage | undefined): string {
  if (message?.role !== 'user') return ''
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function resultsOf(message: ModelMessage): string[] {
  if (message.role !== 'tool') return []
  return message.content.flatMap((part) => (part.type === 'tool-result' ? [JSON.stringify(part)] : []))
}
