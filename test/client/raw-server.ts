import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { onTestFinished } from 'vitest'

// An HTTP server that says what a test writes, and events of a simple run.

type Answer = (response: ServerResponse, run: RunAgentInput) => void

/** Answers each request as told, the last answer also to later ones, and keeps what it was asked. */
export async function serve(...answers: Answer[]) {
  const asked: { method: string; headers: IncomingHttpHeaders; run: RunAgentInput }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const run: RunAgentInput = JSON.parse(body || '{}')
    asked.push({ method: request.method ?? '', headers: request.headers, run })
    response.setHeader('content-type', 'text/event-stream')
    answers[Math.min(asked.length, answers.length) - 1]?.(response, run)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return { asked, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/chat` }
}

/** Says this, and breaks off. */
export function cutAfter(response: ServerResponse, text: string): void {
  response.write(text)
  setTimeout(() => response.destroy(), 10)
}

export const frame = (one: unknown, id?: string) =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(one)}\n\n`
export const frames = (events: readonly unknown[]) => events.map((one) => frame(one)).join('')

export const story = ({ threadId, runId }: RunAgentInput, words = 'Done.'): AGUIEvent[] => [
  { type: 'RUN_STARTED', threadId, runId },
  { type: 'TEXT_MESSAGE_START', messageId: `m-${runId}` },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: `m-${runId}`, delta: words },
  { type: 'TEXT_MESSAGE_END', messageId: `m-${runId}` },
  { type: 'RUN_FINISHED', threadId, runId },
]

export const half = (run: RunAgentInput) => story(run, 'The capital of Fra').slice(0, 3)
