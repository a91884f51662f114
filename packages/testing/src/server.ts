import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { RunAgentInput } from '@countersign/core'
import {
  createScript,
  type Frame,
  type RunScript,
  type Script,
  type ScriptHost,
  type ScriptOptions,
} from './script.js'
import { ScriptError } from './script-error.js'

export { type ScriptedSocket, type ScriptedSocketOptions, scriptedSocket } from './socket.js'

/** A scripted server on the loopback interface. */
export interface ScriptedServer extends Script {
  /** Its endpoint: SSE, or NDJSON for requests that accept `application/x-ndjson`. */
  readonly url: string
  /** The headers of a request, by its number from 1. */
  headers(number: number): Readonly<Record<string, string | string[] | undefined>>
  close(): Promise<void>
}

/**
 * The server of `scriptedConnection` over real HTTP: the same scripts, plus `respond` and `bytes`. Close it at the end of the test.
 *
 * @example
 * const server = await scriptedServer([[text('Hello.')]])
 * const client = new ChatClient({ connection: fetchServerSentEvents(server.url) })
 */
export async function scriptedServer(
  runs: readonly RunScript[],
  options?: ScriptOptions,
): Promise<ScriptedServer> {
  const { script, answer } = createScript(runs, options)
  const received: IncomingMessage['headers'][] = []
  const http = createServer((request, response) => {
    received.push(request.headers)
    respond(answer, request, response).catch((error: unknown) => {
      // The script itself is wrong: the client sees a refusal or a broken stream, and the timeline records why.
      script.timeline.add({ kind: 'note', run: script.requests.length, text: String(error) })
      if (error instanceof ScriptError && !response.headersSent) response.writeHead(500).end(error.message)
      else response.destroy()
    })
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const address = http.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return Object.assign(script, {
    url: `http://127.0.0.1:${port}/`,
    headers: (number: number) => received[number - 1] ?? {},
    async close() {
      http.closeAllConnections()
      http.close()
      await once(http, 'close')
    },
  })
}

async function respond(
  answer: ScriptHost['answer'],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const lines = request.headers.accept === 'application/x-ndjson'
  const contentType = lines ? 'application/x-ndjson' : 'text/event-stream'
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  const input: RunAgentInput = JSON.parse(await readBody(request))
  for await (const frame of answer(input, gone.signal)) {
    if (!response.headersSent && frame.kind !== 'respond') {
      response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' })
      response.flushHeaders()
    }
    write(frame, response, lines)
    if (frame.kind === 'cut') return
  }
  if (!response.headersSent) response.writeHead(200, { 'content-type': contentType })
  response.end()
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function write(frame: Frame, response: ServerResponse, lines: boolean): void {
  switch (frame.kind) {
    case 'event':
      response.write(lines ? `${JSON.stringify(frame.event)}\n` : `data: ${JSON.stringify(frame.event)}\n\n`)
      return
    case 'bytes':
      response.write(frame.text)
      return
    case 'respond':
      response.writeHead(frame.status, { 'content-type': frame.contentType })
      response.write(frame.body)
      return
    case 'cut':
      // Flushes what was written: a reset would discard it.
      response.write('', () => response.socket?.destroy())
      return
    default:
      frame satisfies never
  }
}
