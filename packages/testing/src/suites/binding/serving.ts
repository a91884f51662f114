import { fetchServerSentEvents, type UIMessage } from '@countersign/client'
import { scriptedConnection } from '../../connection.js'
import { resolve, text } from '../../events.js'
import { chat, type Expect, type Spec } from './bench.js'

const initialMessages: readonly UIMessage[] = [
  { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'tidy <up> & "away"' }] },
  {
    id: 'h1',
    role: 'assistant',
    parts: [
      { type: 'text', text: 'Shall I?' },
      {
        type: 'tool-call',
        id: 'c1',
        name: 'delete_file',
        arguments: '{"path":"old.log"}',
        input: { path: 'old.log' },
        state: 'approval-requested',
        approval: {
          id: 'a1',
          needsApproval: true,
          options: ['deny', 'once', 'session'],
          token: 'token-a1',
          expiresAt: '2999-01-01T00:00:00.000Z',
        },
      },
    ],
  },
]

/** Server rendering and hydration. */
export function serving(spec: Spec, expect: Expect): void {
  const uses = {
    options: () => ({ options: optionsFor() }),
    'a client': () => ({ client: chat(optionsFor()) }),
    'a provider with options': () => ({ options: {}, provider: { options: optionsFor() } }),
  }
  for (const [kind, use] of Object.entries(uses)) {
    spec(
      `S4.89 a server renders a pending approval without a request, a timer or an error: ${kind}`,
      async ({ harness }) => {
        // Ignores what a framework does on its first render.
        await harness.renderToString(use())
        const calls = watchGlobals()
        const html = await withoutDocument(() => harness.renderToString(use())).finally(calls.stop)
        expect(calls.seen).toEqual([])
        expect(texts(html)).toEqual(['awaiting-approval', 'a1', 'c1', 'approval-requested'])
      },
    )
  }

  spec(
    'S4.89 H22 a page with a pending approval hydrates without a warning, in place, and can be answered',
    async (bench) => {
      const server = scriptedConnection([[resolve(), text('Done.')]])
      const use = { options: { connection: server, initialMessages, threadId: 't', notify: 'sync' as const } }
      const html = await withoutDocument(() => bench.harness.renderToString(use))
      const { page, before } = await bench.hydrate(html, use)
      expect(page.element('[data-composer]')?.closest('main') === before).toEqual(true)
      expect([page.status(), page.approvals(), page.texts(), server.requests.length]).toEqual([
        'awaiting-approval',
        ['a1'],
        ['tidy <up> & "away"', 'Shall I?'],
        0,
      ])
      await bench.after(() => page.press('approve', 'a1'))
      expect([page.status(), page.call('c1').state, page.texts().at(-1)]).toEqual([
        'ready',
        'complete',
        'Done.',
      ])
    },
  )

  spec('S4.89 what happened before the page was hydrated is shown after it', async (bench) => {
    const server = scriptedConnection([[resolve(), text('Already here.')]])
    const make = () => chat({ connection: server, initialMessages, threadId: 't' })
    const html = await withoutDocument(() => bench.harness.renderToString({ client: make() }))
    const client = make()
    await bench.after(() => client.addToolApprovalResponse({ id: 'a1', approved: true }))
    const { page } = await bench.hydrate(html, { client })
    expect([page.status(), page.approvals(), page.call('c1').state, page.count()]).toEqual([
      'ready',
      [],
      'complete',
      3,
    ])
    expect(page.texts()).toEqual(['tidy <up> & "away"', 'Shall I?', 'Already here.'])
  })

  for (const kind of ['options', 'a provider with options'] as const)
    spec(
      `F51 H22 without a threadId a server and the page agree, and nothing random is made while rendering: ${kind}`,
      async (bench) => {
        const server = scriptedConnection([[text('Yes.')]])
        const options = { connection: server, notify: 'sync' as const }
        const use = kind === 'options' ? { options } : { options: {}, provider: { options } }
        // Ignores what a framework does on its first render.
        await bench.harness.renderToString(use)
        const random = watchRandom()
        const html = await withoutDocument(() => bench.harness.renderToString(use))
        const { page } = await bench.hydrate(html, use).finally(random.stop)
        expect(random.seen).toEqual([])
        await bench.after(() => page.press('send', undefined, { text: 'hello' }))
        expect([page.texts(), server.requests[0]?.threadId !== '']).toEqual([['hello', 'Yes.'], true])
      },
    )
}

function optionsFor() {
  return { connection: fetchServerSentEvents('https://chat.invalid/'), initialMessages, threadId: 't' }
}

function texts(html: string): string[] {
  const container = document.createElement('div')
  container.innerHTML = html
  const value = (selector: string, name: string) =>
    container.querySelector(selector)?.getAttribute(name) ?? ''
  return [
    value('main', 'data-status'),
    value('form[data-approval]', 'data-approval'),
    value('[data-call]', 'data-call'),
    value('[data-call]', 'data-state'),
  ]
}

const watched = [
  [globalThis, 'fetch'],
  [globalThis, 'setTimeout'],
  [globalThis, 'setInterval'],
  [globalThis, 'requestAnimationFrame'],
] as const

const randomness = [
  [Math, 'random'],
  [crypto, 'randomUUID'],
  [crypto, 'getRandomValues'],
] as const

interface Watch {
  readonly seen: readonly string[]
  readonly stop: () => void
}

/** Records calls that send a request or start a timer. */
function watchGlobals(): Watch {
  return watchCalls(watched)
}

/** Records calls whose result would differ between a server and the page. */
function watchRandom(): Watch {
  return watchCalls(randomness)
}

/** Records calls; the functions still work as before. */
function watchCalls(functions: readonly (readonly [object, string])[]): Watch {
  const seen: string[] = []
  const before = functions.map(([owner, name]) => [owner, name, Reflect.get(owner, name)] as const)
  for (const [owner, name, original] of before) {
    const noted = (...args: unknown[]): unknown => {
      seen.push(`${name} ${new Error().stack}`)
      return Reflect.apply(original, owner, args)
    }
    Reflect.set(owner, name, noted)
  }
  return {
    seen,
    stop: () => {
      for (const [owner, name, original] of before) Reflect.set(owner, name, original)
    },
  }
}

const inPagesOnly = ['window', 'document', 'location', 'HTMLElement', 'Element', 'Node'] as const

/** Renders as on a server, without the globals of a page. */
async function withoutDocument<T>(render: () => Promise<T>): Promise<T> {
  const before = inPagesOnly.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const)
  for (const name of inPagesOnly) Reflect.deleteProperty(globalThis, name)
  try {
    if (typeof document !== 'undefined')
      throw new Error('The document of this environment cannot be taken away.')
    return await render()
  } finally {
    for (const [name, property] of before) {
      if (property) Object.defineProperty(globalThis, name, property)
    }
  }
}
