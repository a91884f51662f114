import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { fetchServerSentEvents } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { AbstractAgent } from 'ag-ui-client-1'
import { listening } from '../engine/listening.js'
import { prompts } from './our-agent.js'
import { ourClient, type PeerServer } from './our-client.js'
import { peerEvents } from './peer-script.js'

/** What stands beside `@ag-ui/client` in its own dependencies. */
const beside = createRequire(createRequire(import.meta.url).resolve('ag-ui-client-1'))
const { EventEncoder }: EncoderModule = beside('@ag-ui/encoder')
const { Observable }: ObservableModule = beside('rxjs')

interface EncoderModule {
  readonly EventEncoder: new (options: {
    accept: string
  }) => { encode(event: object): string; getContentType(): string }
}

type Run = ReturnType<AbstractAgent['run']>

interface Subscriber {
  next(event: AGUIEvent): void
  complete(): void
}

interface ObservableModule {
  readonly Observable: new (subscribe: (subscriber: Subscriber) => () => void) => Run
}

/** An agent as AG-UI's own SDK has them. */
class ScriptedAgent extends AbstractAgent {
  readonly #sent: string[]

  constructor(sent: string[], input: RunAgentInput) {
    super({ threadId: input.threadId, initialMessages: input.messages })
    this.#sent = sent
  }

  run(input: RunAgentInput): Run {
    return new Observable((subscriber) => {
      let open = true
      void (async () => {
        for (const event of peerEvents(input, this.#sent)) {
          if (isSlow(input)) await sleep(5)
          if (!open) return
          subscriber.next(event)
        }
        subscriber.complete()
      })()
      return () => {
        open = false
      }
    })
  }
}

function isSlow({ messages }: RunAgentInput): boolean {
  const last = messages.findLast(({ role }) => role === 'user')
  return last?.role === 'user' && last.content === prompts.slow
}

/** A route as AG-UI's documentation has them: the agent runs, and the encoder writes what its pipeline lets through. */
async function openRoute(): Promise<PeerServer> {
  const sent: string[] = []
  let requests = 0
  const server = createServer(async (request, response) => {
    requests++
    const input = await readInput(request)
    await respond(new ScriptedAgent(sent, input), input, request, response)
  })
  const connection = fetchServerSentEvents(`http://${await listening(server)}/`)
  return { options: { connection }, sent, requests: () => requests }
}

async function readInput(request: IncomingMessage): Promise<RunAgentInput> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

async function respond(
  agent: ScriptedAgent,
  { runId, resume, tools = [] }: RunAgentInput,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const encoder = new EventEncoder({ accept: request.headers.accept ?? '' })
  response.writeHead(200, { 'content-type': encoder.getContentType() })
  response.on('close', () => agent.abortRun())
  await agent.runAgent(
    { runId, tools, ...(resume && { resume }) },
    { onEvent: ({ event }) => void response.write(encoder.encode(event)) },
  )
  response.end()
}

ourClient('our client on an AbstractAgent 1.0.0 behind @ag-ui/encoder', openRoute)
