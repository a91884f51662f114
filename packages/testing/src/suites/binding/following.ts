import type { ChatActions } from '@countersign/client'
import { scriptedConnection } from '../../connection.js'
import { gated, hold, resolve, text } from '../../events.js'
import { chat, type Expect, type Spec } from './bench.js'
import type { PageOptions } from './harness.js'

/** Changed options are applied; the actions never change. */
export function following(spec: Spec, expect: Expect): void {
  spec(
    'S4.90 options of a page that change are followed, and one given no longer is taken back',
    async (bench) => {
      const server = scriptedConnection([[hold(), text('One.')], [text('Two.')]])
      const finished: string[] = []
      const use = (more: PageOptions) => ({
        options: { connection: server, notify: 'sync' as const, ...more },
      })
      const page = await bench.open(
        use({ forwardedProps: { tone: 'dry' }, onFinish: () => finished.push('first') }),
      )
      await bench.after(() => page.press('send', undefined, { text: 'one' }))
      await bench.update(page, use({ onFinish: () => finished.push('second') }))
      await bench.after(() => server.release())
      expect(finished).toEqual(['second'])
      await bench.update(page, use({}))
      await bench.after(() => page.press('send', undefined, { text: 'two' }))
      expect([finished, page.texts()]).toEqual([['second'], ['one', 'One.', 'two', 'Two.']])
      expect(server.requests.map(({ forwardedProps }) => forwardedProps ?? {})).toEqual([{ tone: 'dry' }, {}])
    },
  )

  spec(
    'H1 H8 H14 H17 H19 options of one send, shared state, an updater and held answers work',
    async (bench) => {
      const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
      const options = {
        connection: server,
        notify: 'sync' as const,
        autoContinue: false,
        initialState: { n: 1 },
      }
      const page = await bench.open({ options })
      const { sendMessage, addToolApprovalResponses, setState, setMessages } = page.mounted.chat()
      await bench.after(() => void sendMessage('go', { forwardedProps: { mood: 'kind' } }))
      await bench.after(() => void addToolApprovalResponses([{ id: 'a1', approved: true }]))
      expect(server.requests.length).toEqual(1)
      await bench.after(() => setState({ n: 2 }))
      await bench.after(() => void sendMessage())
      expect(server.requests.map(({ state, forwardedProps }) => [state, forwardedProps])).toEqual([
        [{ n: 1 }, { mood: 'kind' }],
        [{ n: 2 }, undefined],
      ])
      expect(page.texts()).toEqual(['go', 'Done.'])
      await bench.after(() => setMessages((before) => before.slice(0, 1)))
      expect(page.texts()).toEqual(['go'])
    },
  )

  spec('S4.90 options of a provider are followed, under those of the page', async (bench) => {
    const server = scriptedConnection([[text('One.')], [text('Two.')], [text('Three.')]])
    const use = (given: unknown, own?: unknown) => ({
      options: own === undefined ? {} : { forwardedProps: own },
      provider: { options: { connection: server, notify: 'sync' as const, forwardedProps: given } },
    })
    const page = await bench.open(use('provider'))
    await bench.after(() => page.press('send', undefined, { text: 'one' }))
    await bench.update(page, use('provider', 'page'))
    await bench.after(() => page.press('send', undefined, { text: 'two' }))
    await bench.update(page, use('provider again'))
    await bench.after(() => page.press('send', undefined, { text: 'three' }))
    expect(server.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([
      'provider',
      'page',
      'provider again',
    ])
  })

  spec('S4.90 options of a page end with it; a run that is open then still has them', async (bench) => {
    const server = scriptedConnection([[hold(), text('One.')], [text('Two.')], [text('Three.')]])
    const finished: string[] = []
    const onFinish = () => finished.push('page')
    const provider = { options: { connection: server, notify: 'sync' as const, forwardedProps: 'provider' } }
    const use = (threadId: string, more: PageOptions = {}) => ({ options: { threadId, ...more }, provider })
    const page = await bench.open(use('a', { forwardedProps: 'page', onFinish }))
    await bench.after(() => page.press('send', undefined, { text: 'one' }))
    await bench.after(() => page.press('send', undefined, { text: 'two' }))
    await bench.update(page, use('b'))
    await bench.after(() => server.release())
    await bench.update(page, use('a'))
    await bench.after(() => page.press('send', undefined, { text: 'three' }))
    expect(server.requests.map(({ forwardedProps }) => forwardedProps)).toEqual(['page', 'page', 'provider'])
    expect([finished, page.texts().length]).toEqual([['page', 'page'], 6])
  })

  spec('S4.87 the actions are the same functions over renders, runs and new options', async (bench) => {
    const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
    const use = (forwardedProps: unknown) => ({
      options: { connection: server, notify: 'sync' as const, forwardedProps },
    })
    const page = await bench.open(use(1))
    const before = actionsOf(page.mounted.chat())
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    await bench.update(page, use(2))
    await bench.after(() => page.press('approve', 'a1'))
    expect(page.status()).toEqual('ready')
    const after = actionsOf(page.mounted.chat())
    expect(before.map((action, at) => typeof action === 'function' && action === after[at])).toEqual(
      before.map(() => true),
    )
  })

  spec('S4.82 the actions act on the client, and say what became of them', async (bench) => {
    const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
    const client = chat({ connection: server })
    const page = await bench.open({ client })
    const { sendMessage, addToolApprovalResponse } = page.mounted.chat()
    const said: unknown[] = []
    const note = (result: unknown) => said.push(result)
    await bench.after(() => sendMessage('tidy up').then(note))
    await bench.after(() => addToolApprovalResponse({ id: 'a1', approved: true }).then(note))
    await bench.after(() => addToolApprovalResponse({ id: 'a1', approved: false }).then(note))
    expect(said).toEqual([{ status: 'sent' }, { status: 'sent' }, { status: 'already-answered' }])
  })
}

const names = [
  'sendMessage',
  'append',
  'cancelQueued',
  'addToolApprovalResponse',
  'addToolApprovalResponses',
  'withdrawApprovalResponse',
  'addToolResult',
  'respondToInterrupt',
  'stop',
  'retry',
  'regenerate',
  'clear',
  'setMessages',
  'setState',
  'clearError',
] as const satisfies readonly (keyof ChatActions)[]

function actionsOf(chat: ChatActions): unknown[] {
  return names.map((name) => chat[name])
}
