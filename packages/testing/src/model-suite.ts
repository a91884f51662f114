import type { Model, ModelEvent, ModelRequest } from '@countersign/server'
import type { SuiteRunner } from './ledger-suite.js'

/** What the model under test is to answer next; an adapter replays a recording of its provider that says this. */
export type ModelStory =
  /** Says `Hello, world.` and stops. */
  | 'text'
  /** Calls `get_weather` with `{"city":"Oslo"}` and `get_time` with no arguments, both in one turn. */
  | 'calls'
  /** Begins to speak and never ends by itself. */
  | 'endless'
  /** Begins to speak; then the stream ends without its last event. */
  | 'cut'

/** Makes a model that tells one story. */
export type CreateModel = (story: ModelStory) => Model | Promise<Model>

const request: ModelRequest = {
  system: 'Be brief.',
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Hello?' }] },
    { role: 'assistant', content: [{ type: 'tool-call', id: 'c0', name: 'get_time', arguments: '{}' }] },
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'c0',
          toolName: 'get_time',
          outcome: { kind: 'denied', reason: 'no' },
        },
      ],
    },
  ],
  tools: [
    {
      name: 'get_weather',
      description: 'The weather.',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
    { name: 'get_time', description: 'The time.', parameters: { type: 'object', properties: {} } },
  ],
}

/**
 * What the engine relies on in any {@link Model}.
 *
 * @example
 * describeModel('scriptedModel', (story) => scriptedModel([stories[story]]), { test, expect })
 */
export function describeModel(name: string, create: CreateModel, { test, expect }: SuiteRunner): void {
  const spec = (sentence: string, run: () => Promise<void>) => test(`${sentence} (${name})`, run)

  async function listen(story: ModelStory): Promise<ModelEvent[]> {
    const model = await create(story)
    const events: ModelEvent[] = []
    for await (const event of model.stream(request, { signal: new AbortController().signal }))
      events.push(event)
    return events
  }

  spec('a model has a name', async () => {
    expect(typeof (await create('text')).id).toEqual('string')
  })

  spec('the deltas of a text make the text, and finish comes last and once', async () => {
    const events = await listen('text')
    expect(textOf(events)).toEqual('Hello, world.')
    expect(events.filter(({ type }) => type === 'finish')).toEqual([{ type: 'finish', reason: 'stop' }])
    expect(events.at(-1)?.type).toEqual('finish')
  })

  spec('calls of one turn have ids of their own and arguments that are JSON', async () => {
    const events = await listen('calls')
    const calls = callsOf(events)
    expect(calls.map((call) => call.name)).toEqual(['get_weather', 'get_time'])
    expect(new Set(calls.map(({ id }) => id)).size).toEqual(2)
    expect(calls.map((call) => JSON.parse(call.arguments || '{}'))).toEqual([{ city: 'Oslo' }, {}])
    expect(events.at(-1)).toEqual({ type: 'finish', reason: 'tool_calls' })
  })

  spec('an abort ends the stream, quietly or with an error, and nothing comes after it', async () => {
    const model = await create('endless')
    const controller = new AbortController()
    let after = 0
    const reading = (async () => {
      for await (const _ of model.stream(request, { signal: controller.signal })) {
        if (controller.signal.aborted) after++
        controller.abort()
      }
    })()
    await reading.catch(() => {})
    expect(after).toEqual(0)
  })

  spec(
    'a stream that is cut off ends without finish, or throws, and what was said before is kept',
    async () => {
      const model = await create('cut')
      const events: ModelEvent[] = []
      try {
        for await (const event of model.stream(request, { signal: new AbortController().signal }))
          events.push(event)
      } catch {
        // as good as ending without a finish
      }
      expect(textOf(events).length > 0).toEqual(true)
      expect(events.some(({ type }) => type === 'finish')).toEqual(false)
    },
  )

  spec('a request is only read', async () => {
    const before = JSON.stringify(request)
    await listen('text')
    expect(JSON.stringify(request)).toEqual(before)
  })
}

function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === 'text-delta' ? event.delta : '')).join('')
}

/** The calls of a turn, whole or streamed. */
function callsOf(events: readonly ModelEvent[]): { id: string; name: string; arguments: string }[] {
  const calls = new Map<string, { id: string; name: string; arguments: string }>()
  for (const event of events) {
    if (event.type === 'tool-call')
      calls.set(event.id, { id: event.id, name: event.name, arguments: event.arguments })
    if (event.type === 'tool-call-start')
      calls.set(event.id, { id: event.id, name: event.name, arguments: '' })
    const open = event.type === 'tool-call-delta' ? calls.get(event.id) : undefined
    if (open && event.type === 'tool-call-delta') open.arguments += event.delta
  }
  return [...calls.values()]
}
