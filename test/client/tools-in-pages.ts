import { type ModelEvent, tool, toolDefinition } from '@countersign/server'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import { openPage, startServerWith } from './threads-server.js'

// A server with tools that run in its pages.

const input = z.object({ to: z.string() })
const definition = { name: 'free', description: 'Runs in the page.', input }
export const free = toolDefinition(definition)
export const late = toolDefinition({ ...definition, name: 'late' })
export const sign = toolDefinition({ ...definition, name: 'sign', needsApproval: true })
const send = tool({
  name: 'send',
  description: 'Sends.',
  input,
  needsApproval: true,
  execute: () => 'sent',
})

export const calls = (name: string, to: string): ModelEvent => ({
  type: 'tool-call',
  id: `call-${to}`,
  name,
  arguments: JSON.stringify({ to }),
})
export const finish: ModelEvent = { type: 'finish', reason: 'tool_calls' }
type Replies = Parameters<typeof startServerWith>[1][]

export { gate } from './foreign-server.js'

/** Pages with the same storage are pages of one browser. What ran where is in `ran`. */
export function start(finished: Promise<void>, ...replies: Replies) {
  const tools = [send, sign.client(() => 0), free.client(() => 0), late.client(() => 0)]
  const server = startServerWith({ tools }, ...replies)
  const ran: string[] = []
  const page = (name: string, local = memoryPersistence(), handle = server.handle) => {
    const execute = async ({ to }: { to: string }) => {
      ran.push(`${to} in ${name}`)
      await finished
      return 1
    }
    const more = { tools: [sign.client(execute), free.client(execute)], onWarning: () => {} }
    return openPage({ handle }, { local }, more)
  }
  return { server, ran, page }
}

type Page = ReturnType<typeof openPage>
export const call = ({ client }: Page, to: string) =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts)
    .flatMap((part) => (part.type === 'tool-call' && part.id === `call-${to}` ? part : []))[0]
export const asked = ({ client }: Page) => client.getSnapshot().pendingApprovals.map(({ input }) => input)
export const approve = (page: Page, to: string) =>
  page.client.addToolApprovalResponse({ id: call(page, to)?.approval?.id ?? '', approved: true })
