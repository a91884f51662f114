import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toAGUIMessages, type UIMessage } from '@countersign/core'
import { type Agent, createAgent, type Model, tool } from '@countersign/server'
import { z } from 'zod'
import { protocols } from './protocols.mjs'
import { ownFixtures, type ReplayCase } from './replay.mjs'
import { serve } from './serve.js'

/** A file of the recordings. */
export function recorded(path: string): Buffer {
  return readFileSync(join(ownFixtures, path))
}

/** An agent whose model answers with recordings, one a request, and has every tool that they call. */
export async function recordedAgent(steps: readonly ReplayCase[]) {
  const server = await serve(...steps.map(({ file, contentType }) => ({ body: recorded(file), contentType })))
  const [first] = steps
  const model: Model | undefined = protocols[first?.protocol ?? '']?.model(server.origin, { stream: true })
  if (model === undefined) throw new Error('there is no adapter')
  const agent = createAgent({ model, tools: toolsOf(steps), warn: () => {}, maxSteps: steps.length })
  return { agent, requests: server.requests }
}

function toolsOf(steps: readonly ReplayCase[]) {
  const names = steps.flatMap(({ expect: path }): string[] =>
    JSON.parse(recorded(path).toString()).toolCalls.map(({ name }: { name: string }) => name),
  )
  return [...new Set(names)].map((name) =>
    tool({ name, description: name, input: z.looseObject({}), execute: () => `result of ${name}` }),
  )
}

let runs = 0

/** Lets a person say something, after what was said before, as a client would send it. */
export function say(agent: Agent, text: string, before: readonly UIMessage[] = []) {
  const said: UIMessage = { id: `user_${before.length}`, role: 'user', parts: [{ type: 'text', text }] }
  return agent.generate({
    threadId: 'thread',
    runId: `run_${++runs}`,
    protocolVersion: '1.0',
    messages: [...toAGUIMessages([...before, said])],
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
  })
}
