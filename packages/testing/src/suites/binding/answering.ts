import { type ChatClientOptions, clientTool } from '@countersign/client'
import { scriptedConnection } from '../../connection.js'
import { ask, call, finish, gated, hold, resolve, text } from '../../events.js'
import { chat, type Expect, type Spec } from './bench.js'

export function answering(spec: Spec, expect: Expect): void {
  spec('S4.82 approving updates the view, sends one continuation and shows its result', async (bench) => {
    const server = scriptedConnection([gated(1), [hold(), resolve(), text('Done.')]])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    expect([page.status(), page.loading(), page.approvals()]).toEqual(['awaiting-approval', false, ['a1']])
    expect(page.call('c1')).toEqual({
      name: 'delete_file',
      state: 'approval-requested',
      approved: '',
      reason: '',
      input: { path: '1.log' },
      error: '',
    })

    await bench.after(() => page.press('approve', 'a1'))
    const { state, approved } = page.call('c1')
    expect([state, approved, page.approvals(), page.loading()]).toEqual([
      'approval-responded',
      'true',
      [],
      true,
    ])
    expect(server.requests.map(answersOf)).toEqual([[], [['a1', { approved: true }]]])

    await bench.after(() => server.release())
    expect([page.call('c1').state, page.call('c1').output]).toEqual(['complete', 'done'])
    expect([page.status(), page.loading(), page.texts()]).toEqual(['ready', false, ['tidy up', 'Done.']])
    expect([server.requests.length, server.mostStreams]).toEqual([2, 1])
  })

  spec('S4.82 denying updates the view and sends the reason', async (bench) => {
    const server = scriptedConnection([gated(1), [resolve(), text('I left it.')]])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    await bench.after(() => page.press('deny', 'a1', { reason: 'not now' }))
    const { state, approved, reason } = page.call('c1')
    expect([state, approved, reason]).toEqual(['denied', 'false', 'not now'])
    expect([page.status(), page.approvals(), page.texts()]).toEqual(['ready', [], ['tidy up', 'I left it.']])
    expect(server.requests.map(answersOf)).toEqual([[], [['a1', { approved: false, reason: 'not now' }]]])
  })

  spec(
    'S4.90 chained approvals: each is shown when it is asked, and n of them make n + 1 requests',
    async (bench) => {
      const server = scriptedConnection([
        gated(1),
        [resolve(), ...gated(2)],
        [resolve(), ...gated(3)],
        [resolve(), text('All gone.')],
      ])
      const page = await bench.open({ client: chat({ connection: server }) })
      await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
      for (const number of [1, 2, 3]) {
        expect([page.status(), page.approvals()]).toEqual(['awaiting-approval', [`a${number}`]])
        await bench.after(() => page.press('approve', `a${number}`))
        expect(page.call(`c${number}`).state).toEqual('complete')
      }
      expect([page.status(), page.approvals(), server.requests.length]).toEqual(['ready', [], 4])
      expect(page.texts()).toEqual(['tidy up', 'All gone.'])
    },
  )

  spec('S4.90 an approval given while its predecessor streams is sent after that stream', async (bench) => {
    const server = scriptedConnection([
      gated(1),
      [resolve(), ...gated(2), hold()],
      [resolve(), text('Both gone.')],
    ])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    await bench.after(() => page.press('approve', 'a1'))
    expect([page.status(), page.approvals()]).toEqual(['streaming', ['a2']])

    await bench.after(() => page.press('approve', 'a2'))
    expect([page.call('c2').state, page.approvals(), server.requests.length]).toEqual([
      'approval-responded',
      [],
      2,
    ])
    await bench.after(() => server.release())
    expect([page.status(), page.call('c2').state]).toEqual(['ready', 'complete'])
    expect(server.requests.map(answersOf)).toEqual([
      [],
      [['a1', { approved: true }]],
      [['a2', { approved: true }]],
    ])
  })

  spec(
    'S4.90 parallel approvals are shown together and sent together, once all are answered',
    async (bench) => {
      const server = scriptedConnection([
        [gated(1), gated(2), gated(3)],
        [resolve(), text('Two are gone.')],
      ])
      const page = await bench.open({ client: chat({ connection: server }) })
      await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
      expect(page.approvals()).toEqual(['a1', 'a2', 'a3'])
      await bench.after(() => page.press('approve', 'a2'))
      expect([page.approvals(), page.call('c2').state, page.status()]).toEqual([
        ['a1', 'a3'],
        'approval-responded',
        'awaiting-approval',
      ])
      await bench.after(() => page.press('deny', 'a3'))
      expect(server.requests.length).toEqual(1)
      await bench.after(() => page.press('approve', 'a1'))
      expect(server.requests.length).toEqual(2)
      expect(answersOf(server.requests[1]).length).toEqual(3)
      expect(['c1', 'c2', 'c3'].map((id) => page.call(id).state)).toEqual(['complete', 'complete', 'denied'])
      expect([page.status(), page.texts()]).toEqual(['ready', ['tidy up', 'Two are gone.']])
    },
  )

  spec('S3.93 a double click gives one answer, and a click on the other button none', async (bench) => {
    const server = scriptedConnection([gated(1), [hold(), resolve()]])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    const buttons = ['approve', 'approve', 'deny'].map((name) =>
      page.element(`[data-approval="a1"] [name="${name}"]`),
    )
    await bench.after(() => {
      for (const button of buttons) if (button instanceof HTMLElement) button.click()
    })
    await bench.after(() => server.release())
    expect([page.call('c1').state, server.requests.map(answersOf)]).toEqual([
      'complete',
      [[], [['a1', { approved: true }]]],
    ])
  })

  spec(
    'S4.90 arguments that the user edits are sent whole, and the original ones stay visible',
    async (bench) => {
      const server = scriptedConnection([
        [call('c1', 'delete_file', { path: '1.log' }), ask('a1', 'c1', { allowEdits: true })],
        [resolve()],
      ])
      const page = await bench.open({ client: chat({ connection: server }) })
      await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
      await bench.after(() => page.press('approve', 'a1', { edit: '{"path":"2.log"}' }))
      expect(server.requests.map(answersOf)).toEqual([
        [],
        [['a1', { approved: true, editedArgs: { path: '2.log' } }]],
      ])
      expect([page.call('c1').state, page.call('c1').input]).toEqual(['complete', { path: '1.log' }])
    },
  )

  spec(
    'S3.92 an answer for the session is offered where the request allows it, and only there',
    async (bench) => {
      const server = scriptedConnection([
        [
          gated(1),
          call('c2', 'delete_file', { path: '2.log' }),
          ask('a2', 'c2', { options: ['deny', 'once', 'session'] }),
        ],
        [resolve()],
      ])
      const page = await bench.open({ client: chat({ connection: server }) })
      await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
      expect(['a1', 'a2'].map((id) => page.offers(id, 'session'))).toEqual([false, true])
      await bench.after(() => page.press('session', 'a2'))
      await bench.after(() => page.press('deny', 'a1'))
      expect(new Map(answersOf(server.requests[1])).get('a2')).toEqual({ approved: true, scope: 'session' })
    },
  )

  spec('S3.97 a request that comes twice is shown once, and keeps its element', async (bench) => {
    const server = scriptedConnection([[gated(1), hold(), finish()]])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    const before = page.element('[data-approval="a1"]')
    expect([page.status(), page.approvals()]).toEqual(['streaming', ['a1']])
    await bench.after(() => server.release())
    expect([page.status(), page.approvals()]).toEqual(['awaiting-approval', ['a1']])
    expect(page.element('[data-approval="a1"]') === before).toEqual(true)
  })

  spec('H21 the status shows a client tool at work, and then an interrupt that waits', async (bench) => {
    const question = { id: 'q1', reason: 'input_required', message: 'Which folder?' }
    const server = scriptedConnection([
      [call('c1', 'locate')],
      [text('There.'), finish({ interrupts: [question] })],
      [text('Thanks.')],
    ])
    let found = (_: string) => {}
    const place = new Promise<string>((done) => {
      found = done
    })
    const tools = [
      clientTool({ name: 'locate', description: '', input: anything, parameters: {}, execute: () => place }),
    ]
    const page = await bench.open({ options: { connection: server, notify: 'sync', tools } })
    await bench.after(() => page.press('send', undefined, { text: 'where am I?' }))
    expect([page.status(), page.call('c1').state]).toEqual(['executing', 'executing'])
    await bench.after(() => found('Lisbon'))
    expect([page.status(), page.texts().at(-1)]).toEqual(['awaiting-answer', 'There.'])
    await bench.after(() => page.mounted.chat().respondToInterrupt({ id: 'q1', payload: {} }))
    expect([page.status(), page.texts().at(-1)]).toEqual(['ready', 'Thanks.'])
  })

  spec(
    'H28 an edit that does not fit the schema of the page leaves the request open, with the issues by field',
    async (bench) => {
      const server = scriptedConnection([
        [call('c1', 'delete_file', { path: 'a.log' }), ask('a1', 'c1', { allowEdits: true })],
        [resolve(), text('Done.')],
      ])
      const serverTools = [{ name: 'delete_file', input: withPath }]
      const page = await bench.open({ options: { connection: server, notify: 'sync', serverTools } })
      await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
      const { addToolApprovalResponse } = page.mounted.chat()
      const results: unknown[] = []
      for (const input of [{ path: 1 }, { path: 'b.log' }])
        await bench.after(async () =>
          results.push([
            await addToolApprovalResponse({ id: 'a1', approved: true, input }),
            server.requests.length,
          ]),
        )
      const issues = [{ path: ['path'], message: 'It has to be a text.' }]
      const reason = 'path: It has to be a text.'
      expect(results).toEqual([
        [{ status: 'refused', code: 'approval-edit-invalid', reason, issues }, 1],
        [{ status: 'sent' }, 2],
      ])
      expect([page.status(), page.call('c1').state]).toEqual(['ready', 'complete'])
    },
  )
}

/** The answers that a request carries: approval id and payload. */
export function answersOf(
  request: { readonly resume?: readonly { interruptId: string; payload?: unknown }[] } | undefined,
): [id: string, payload: unknown][] {
  return (request?.resume ?? []).map(({ interruptId, payload }) => [interruptId, payload])
}

type Schema = NonNullable<ChatClientOptions['serverTools']>[number]['input']

const schemaOf = (validate: Schema['~standard']['validate']): Schema => ({
  '~standard': { version: 1, vendor: 'test', validate },
})

const anything = schemaOf((value) => ({ value }))

const withPath = schemaOf((value) =>
  typeof Object(value).path === 'string'
    ? { value }
    : { issues: [{ path: ['path'], message: 'It has to be a text.' }] },
)
