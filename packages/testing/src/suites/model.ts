import type {
  Model,
  ModelApprovalResponse,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ModelToolResult,
} from '@countersign/server'
import type { SuiteRunner } from './runner.js'

/** What the model under test must reply; an adapter replays a recording of its provider with this reply. */
export type ModelStory =
  /** Streams `Hello, world.` and stops. */
  | 'text'
  /** Calls `get_weather` with `{"city":"Oslo"}` and `get_time` with no arguments, both in one turn. */
  | 'calls'
  /** Starts a text and never ends on its own. */
  | 'endless'
  /** Starts a text; then the stream ends without its last event. */
  | 'cut'
  /**
   * The provider requests approval with the id `mcpr_1` before it runs `search` with `{"q":"x"}`. Only for
   * providers that do this; for others, {@link CreateModel} returns `undefined`.
   */
  | 'asks'
  /** The provider runs the approved call, which finds 3. Only for providers with approvals, too. */
  | 'runs'

/** Creates a model for one story, or `undefined` if its provider cannot do this (`asks` and `runs`). */
export type CreateModel = (story: ModelStory) => Model | undefined | Promise<Model | undefined>

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
 * What the engine requires of every {@link Model}.
 *
 * @example
 * describeModel('scriptedModel', (story) => scriptedModel([stories[story]]), { test, expect })
 */
export function describeModel(name: string, create: CreateModel, { test, expect }: SuiteRunner): void {
  const spec = (sentence: string, run: () => Promise<void>) => test(`${sentence} (${name})`, run)

  async function make(story: ModelStory): Promise<Model> {
    const model = await create(story)
    if (model === undefined) throw new Error(`The model tells no story "${story}".`)
    return model
  }

  async function listenTo(model: Model, asked: ModelRequest): Promise<ModelEvent[]> {
    const events: ModelEvent[] = []
    for await (const event of model.stream(asked, { signal: new AbortController().signal }))
      events.push(event)
    return events
  }

  const listen = async (story: ModelStory) => listenTo(await make(story), request)

  spec('a model has a name', async () => {
    expect(typeof (await make('text')).id).toEqual('string')
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
    const model = await make('endless')
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
      const model = await make('cut')
      const events: ModelEvent[] = []
      try {
        for await (const event of model.stream(request, { signal: new AbortController().signal }))
          events.push(event)
      } catch {
        // This is as good as ending without a finish.
      }
      expect(textOf(events).length > 0).toEqual(true)
      expect(events.some(({ type }) => type === 'finish')).toEqual(false)
    },
  )

  for (const answer of answers) {
    spec(
      `S0.64 calls that another provider ran, or asked about, keep no model from answering: ${answer.type}`,
      async () => {
        const asked = {
          ...request,
          messages: [...askedElsewhere, { role: 'tool' as const, content: [answer] }, ...request.messages],
        }
        expect(textOf(await listenTo(await make('text'), asked))).toEqual('Hello, world.')
      },
    )
  }

  spec('S0.54 a provider that asks says so with its call, and has an id for its request', async () => {
    const model = await create('asks')
    if (model === undefined) return
    const [call] = startsOf(await listenTo(model, request))
    expect(call?.name).toEqual('search')
    expect(call?.providerExecuted).toEqual(true)
    expect(call?.approval).toEqual({ id: 'mcpr_1', state: 'requested' })
  })

  spec(
    'S0.59 a provider that runs what it asked about names its request, and the result names the call',
    async () => {
      const model = await create('runs')
      if (model === undefined) return
      const approved = {
        type: 'approval-response' as const,
        approvalId: 'mcpr_1',
        toolCallId: 'c1',
        approved: true,
      }
      const events = await listenTo(model, {
        ...request,
        messages: [...askedElsewhere, { role: 'tool', content: [approved] }],
      })
      const [call] = startsOf(events)
      expect(call?.approval).toEqual({ id: 'mcpr_1', state: 'answered' })
      const result = events.find((event) => event.type === 'tool-result')
      expect(result?.toolCallId).toEqual(call?.id)
      expect(result?.outcome.kind).toEqual('ok')
    },
  )

  spec('a request is only read', async () => {
    const before = JSON.stringify(request)
    await listen('text')
    expect(JSON.stringify(request)).toEqual(before)
  })
}

/** A turn in which another provider requested approval of a call that it runs itself. */
const askedElsewhere: readonly ModelMessage[] = [
  { role: 'user', content: [{ type: 'text', text: 'Search for x.' }] },
  {
    role: 'assistant',
    content: [
      {
        type: 'tool-call',
        id: 'c1',
        name: 'search',
        arguments: '{"q":"x"}',
        providerExecuted: true,
        approval: { id: 'mcpr_1', state: 'requested' },
      },
    ],
  },
]

const answers: readonly (ModelApprovalResponse | ModelToolResult)[] = [
  { type: 'approval-response', approvalId: 'mcpr_1', toolCallId: 'c1', approved: false, reason: 'no' },
  { type: 'tool-result', toolCallId: 'c1', toolName: 'search', outcome: { kind: 'ok', value: 3 } },
]

/** The events that start a call, complete or streamed. */
function startsOf(events: readonly ModelEvent[]) {
  return events.filter((event) => event.type === 'tool-call' || event.type === 'tool-call-start')
}

function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === 'text-delta' ? event.delta : '')).join('')
}

/** The calls of a turn, complete or streamed. */
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
