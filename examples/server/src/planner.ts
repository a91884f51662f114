import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Model, ModelEvent } from '@countersign/server'
import { type Call, turnsOf } from './conversation.js'
import { planNext } from './plans.js'
import type { Action } from './replay.js'

const ARGUMENT_CHUNK = 10

/**
 * The demo's embedded model. It is not a language model: it knows the requests of requests.ts and follows a
 * fixed plan for each. It is deterministic. `delay` is the pause between two words in milliseconds.
 */
export function demoPlanner({ delay = 25 }: { delay?: number } = {}): Model {
  return {
    id: 'demo-planner',
    async *stream({ messages, tools }, { signal }) {
      const action = withOffered(planNext(turnsOf(messages)), new Set(tools.map(({ name }) => name)))
      for (const event of eventsOf(action)) {
        if (signal.aborted) return
        yield event
        if (delay > 0) await pause(delay, undefined, { signal }).catch(() => {})
      }
    },
  }
}

/** Some tools come from a server that may not be running: then the planner says so instead of calling them. */
function withOffered({ text, calls }: Action, offered: ReadonlySet<string>): Action {
  if (calls.every(({ name }) => offered.has(name))) return { text, calls }
  return { text: 'That needs the MCP server of the demo, which is not connected here.', calls: [] }
}

function* eventsOf({ text, calls }: Action): Generator<ModelEvent> {
  for (const delta of text.match(/\s*\S+\s*/g) ?? []) yield { type: 'text-delta', delta }
  for (const call of calls) yield* callEvents(call)
  yield { type: 'finish', reason: calls.length === 0 ? 'stop' : 'tool_calls' }
}

function* callEvents({ name, input }: Call): Generator<ModelEvent> {
  const id = `call_${randomUUID()}`
  const text = JSON.stringify(input)
  yield { type: 'tool-call-start', id, name }
  for (let from = 0; from < text.length; from += ARGUMENT_CHUNK) {
    yield { type: 'tool-call-delta', id, delta: text.slice(from, from + ARGUMENT_CHUNK) }
  }
  yield { type: 'tool-call-end', id }
}
