import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AGUIEvent, Message, RunAgentInput } from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'
import type { AgentOptions } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished } from 'vitest'
import { call, counted, fold, input, requests, say, testAgent, user } from './support.js'

/** An agent that asks for `send` whenever a person speaks, behind real HTTP; the user comes from a header. */
export async function serve(options: Partial<AgentOptions> = {}, more: Parameters<typeof counted>[1] = {}) {
  const send = counted('send', { needsApproval: true, ...more })
  let calls = 0
  const turn = ({ messages }: { messages: readonly { role: string }[] }) =>
    messages.at(-1)?.role === 'user' ? call([`c${++calls}`, 'send', { to: 'team', n: 1 }]) : say('done')
  const { agent, model } = testAgent(turn, { tools: [send.tool], ...options })
  const handler = toNodeHandler(agent, {
    context: (request) => ({ subject: String(request.headers['x-user'] ?? 'ann') }),
  })
  const server = createServer(handler).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const post = async (body: RunAgentInput, subject = 'ann'): Promise<readonly AGUIEvent[]> => {
    const headers = { 'content-type': 'application/json', 'x-user': subject }
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    expect(response.status).toBe(200)
    const text = await response.text()
    const frames = text.split('\n\n').filter((frame) => frame.startsWith('id: '))
    const reader = createEventReader({ threadId: body.threadId, runId: body.runId })
    const events: AGUIEvent[] = []
    frames.forEach((frame, index) => {
      expect(frame.startsWith(`id: ${body.runId}:${index + 1}\ndata: `)).toBe(true)
      reader.push(JSON.parse(frame.slice(frame.indexOf('data: ') + 6)), (event) => events.push(event))
    })
    reader.end()
    return events
  }
  const question = async (given: Partial<RunAgentInput> = {}, subject?: string) => {
    const start = [user('go')]
    const events = await post(input(start, given), subject)
    const [first] = requests(events)
    if (first === undefined) throw new Error('nothing was asked')
    return { first, history: fold(start, events) }
  }
  return { send, model, post, question, url }
}

export const yes = { approved: true }
export const withCall = (
  history: readonly Message[],
  change: (call: { function: { arguments: string } }) => void,
): Message[] => {
  const copy = structuredClone([...history]) as Message[]
  for (const message of copy) if (message.role === 'assistant') message.toolCalls?.forEach(change)
  return copy
}
