import { scriptedConnection } from '../../connection.js'
import { finish, gated, resolve, text, textDelta, textEnd, textStart } from '../../events.js'
import { byHand } from '../../script.js'
import { chat, type Expect, type Spec } from './bench.js'
import { watchListeners } from './listeners.js'

/** Pages mount and unmount; mounting twice is like mounting once; unmounting cancels nothing. */
export function mounting(spec: Spec, expect: Expect): void {
  spec('S4.88 mounted in the strict mode: one client, one request, and approvals work', async (bench) => {
    const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
    const options = { connection: server, notify: 'sync' as const }
    const page = await bench.open({ options }, { strict: true })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    expect([server.requests.length, page.approvals()]).toEqual([1, ['a1']])
    await bench.after(() => page.press('approve', 'a1'))
    expect([server.requests.length, page.status(), page.call('c1').state, page.texts()]).toEqual([
      2,
      'ready',
      'complete',
      ['tidy up', 'Done.'],
    ])
    expect(new Set(server.requests.map(({ threadId }) => threadId)).size).toEqual(1)
  })

  spec(
    'S4.88 in the strict mode and below a provider: one client, and another thread is one other',
    async (bench) => {
      const server = scriptedConnection([], { otherwise: [text('Yes.')] })
      const provider = { options: { connection: server, notify: 'sync' as const } }
      const page = await bench.open({ options: {}, provider }, { strict: true })
      await bench.after(() => page.press('send', undefined, { text: 'one' }))
      await bench.update(page, { options: { threadId: 'b' }, provider })
      await bench.after(() => page.press('send', undefined, { text: 'two' }))
      await bench.update(page, { options: {}, provider })
      await bench.after(() => page.press('send', undefined, { text: 'three' }))
      expect(page.texts()).toEqual(['one', 'Yes.', 'three', 'Yes.'])
      const threads = server.requests.map(({ threadId }) => threadId)
      expect([threads.length, threads[1], threads[0] === threads[2]]).toEqual([3, 'b', true])
    },
  )

  for (const strict of [false, true]) {
    spec(
      `S4.88 a page that is gone listens to nothing${strict ? ', in the strict mode too' : ''}`,
      async (bench) => {
        const server = scriptedConnection([gated(1)])
        const client = chat({ connection: server })
        const listeners = watchListeners(client)
        const page = await bench.open({ client }, { strict })
        await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
        expect(listeners() > 0).toEqual(true)
        await bench.close(page)
        expect(listeners()).toEqual(0)
      },
    )
  }

  spec(
    'S4.90 H24 unmounted while it streams: the run goes on, and nothing of the page is updated any more',
    async (bench) => {
      const server = scriptedConnection([byHand])
      const client = chat({ connection: server })
      const page = await bench.open({ client })
      await bench.after(() => page.press('send', undefined, { text: 'hello' }))
      const run = await server.request(1)
      await bench.after(() => run.emit(textStart(), textDelta('Good')))
      const main = page.element('[data-composer]')?.closest('main')
      await bench.close(page)
      const [renders, html] = [new Map(page.mounted.renders()), main?.outerHTML]
      await bench.after(() => run.emit(textDelta(' day'), textEnd()))
      expect(server.openStreams).toEqual(1)
      await bench.after(() => run.emit(finish()))
      expect([await run.closed, client.getSnapshot().status]).toEqual(['finished', 'ready'])
      expect([[...page.mounted.renders()], main?.outerHTML]).toEqual([[...renders], html])

      const again = await bench.open({ client })
      expect([again.status(), again.texts()]).toEqual(['ready', ['hello', 'Good day']])
    },
  )

  spec(
    'F35 H24 unmounted while it streams: what useChat returned still reaches the run of a chat that it made',
    async (bench) => {
      const server = scriptedConnection([byHand])
      const page = await bench.open({ options: { connection: server, notify: 'sync' } })
      await bench.after(() => page.press('send', undefined, { text: 'hello' }))
      const run = await server.request(1)
      await bench.after(() => run.emit(textStart(), textDelta('Good')))
      const chat = page.mounted.chat()
      await bench.close(page)
      await bench.after(() => run.emit(textDelta(' day')))
      expect(server.openStreams).toEqual(1)
      await bench.after(() => chat.stop())
      expect(await run.closed).toEqual('aborted')
    },
  )

  for (const strict of [false, true])
    spec(
      `F35 H24 unmounted with \`onDetach: 'stop'\`: its run is stopped${strict ? ', in the strict mode too' : ''}`,
      async (bench) => {
        const server = scriptedConnection([byHand])
        const options = { connection: server, notify: 'sync' as const, onDetach: 'stop' as const }
        const page = await bench.open({ options }, { strict })
        await bench.after(() => page.press('send', undefined, { text: 'hello' }))
        const run = await server.request(1)
        await bench.after(() => run.emit(textStart(), textDelta('Good')))
        expect([page.status(), server.openStreams]).toEqual(['streaming', 1])
        await bench.close(page)
        expect(await run.closed).toEqual('aborted')
      },
    )

  spec('S4.90 unmounted with an answer under way: the answer arrives', async (bench) => {
    const server = scriptedConnection([gated(1), byHand])
    const client = chat({ connection: server })
    const page = await bench.open({ client })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    page.press('approve', 'a1')
    await bench.close(page)
    const run = await server.request(2)
    await bench.after(() => run.emit(resolve(), finish()))
    const again = await bench.open({ client })
    expect([again.status(), again.call('c1').state]).toEqual(['ready', 'complete'])
  })
}
