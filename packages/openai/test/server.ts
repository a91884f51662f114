import type { Model, ModelEvent, ModelMessage, ModelRequest } from '@countersign/server'

/** Events of a provider as it streams them. */
export function sse(...events: readonly object[]): Response {
  const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  return new Response(frames, { headers: { 'content-type': 'text/event-stream' } })
}

/** A server in the place of `fetch`: gives each request its answer (the last one from then on) and keeps what it was asked. */
export function answering(...answers: readonly (() => Response | Promise<Response>)[]) {
  const bodies: Record<string, unknown>[] = []
  const fetch = async (_url: unknown, init?: { body?: unknown }): Promise<Response> => {
    bodies.push(JSON.parse(String(init?.body)))
    const answer = answers[Math.min(bodies.length, answers.length) - 1]
    if (answer === undefined) throw new Error('there is no answer')
    return answer()
  }
  return { fetch, bodies }
}

export async function collect(model: Model, request: ModelRequest, signal = new AbortController().signal) {
  const events: ModelEvent[] = []
  for await (const event of model.stream(request, { signal })) events.push(event)
  return events
}

/** A request that only says something, behind these messages. */
export function saying(...messages: readonly ModelMessage[]): ModelRequest {
  return { messages: [...messages, { role: 'user', content: [{ type: 'text', text: 'Hi' }] }], tools: [] }
}

export const completed = (output: readonly object[] = []) => ({
  type: 'response.completed',
  response: { id: 'resp_1', model: 'm', status: 'completed', output, usage: null },
})

export const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  id: 'chat_1',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
