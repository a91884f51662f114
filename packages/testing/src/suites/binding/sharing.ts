import type { UIMessage } from '@countersign/client'
import { scriptedConnection } from '../../connection.js'
import { finish, gated, hold, resolve, text, textDelta, textEnd, textStart } from '../../events.js'
import { byHand } from '../../script.js'
import { answersOf } from './answering.js'
import { chat, type Expect, type Spec } from './bench.js'
import { watchListeners } from './listeners.js'
import { readPage } from './page.js'

/** Which chat a page shows (shared, provided or another one), and what is kept when pages mount and unmount. */
export function sharing(spec: Spec, expect: Expect): void {
  spec('S4.90 two pages on one client show the same, and an answer in one counts in both', async (bench) => {
    const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
    const first = await bench.open({ client: chat({ connection: server }) }, { pages: 2 })
    const second = readPage(first.mounted, 1)
    await bench.after(() => first.press('send', undefined, { text: 'tidy up' }))
    expect([first.approvals(), second.approvals()]).toEqual([['a1'], ['a1']])
    await bench.after(() => second.press('approve', 'a1'))
    expect([first.approvals(), second.approvals()]).toEqual([[], []])
    expect([first.texts(), second.texts(), server.requests.length]).toEqual([
      ['tidy up', 'Done.'],
      ['tidy up', 'Done.'],
      2,
    ])
  })

  spec('S4.90 a page that goes leaves the other page of its client alone', async (bench) => {
    const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
    const client = chat({ connection: server })
    const [first, second] = [await bench.open({ client }), await bench.open({ client })]
    await bench.after(() => first.press('send', undefined, { text: 'tidy up' }))
    await bench.close(first)
    await bench.after(() => second.press('approve', 'a1'))
    expect([second.status(), second.texts()]).toEqual(['ready', ['tidy up', 'Done.']])
  })

  spec('S4.90 a page below a provider with a client calls useChat() and shows it', async (bench) => {
    const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
    const client = chat({ connection: server })
    const page = await bench.open({ options: {}, provider: { client } })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    await bench.after(() => page.press('approve', 'a1'))
    expect([page.status(), page.texts()]).toEqual(['ready', ['tidy up', 'Done.']])
    expect(client.getSnapshot().messages.length).toEqual(page.count())
  })

  spec('S4.90 pages below one provider with options share one client', async (bench) => {
    const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
    const provider = { options: { connection: server, notify: 'sync' as const } }
    const first = await bench.open({ options: {}, provider }, { pages: 2 })
    const second = readPage(first.mounted, 1)
    await bench.after(() => first.press('send', undefined, { text: 'tidy up' }))
    await bench.after(() => second.press('approve', 'a1'))
    expect([first.texts(), second.texts(), server.requests.length]).toEqual([
      ['tidy up', 'Done.'],
      ['tidy up', 'Done.'],
      2,
    ])
  })

  spec('S4.90 pages with options of their own and without a provider have a chat each', async (bench) => {
    const server = scriptedConnection([[text('Only here.')]])
    const options = { connection: server, notify: 'sync' as const }
    const first = await bench.open({ options }, { pages: 2 })
    await bench.after(() => first.press('send', undefined, { text: 'hello' }))
    expect([first.texts(), readPage(first.mounted, 1).texts()]).toEqual([['hello', 'Only here.'], []])
  })

  spec('S4.90 another threadId is another client, and the run of the old one goes on', async (bench) => {
    const server = scriptedConnection([byHand, [text('In b.')]])
    const options = { connection: server, notify: 'sync' as const }
    const page = await bench.open({ options: { ...options, threadId: 'a' } })
    await bench.after(() => page.press('send', undefined, { text: 'in a' }))
    const run = await server.request(1)
    await bench.after(() => run.emit(textStart(), textDelta('slow')))
    await bench.update(page, { options: { ...options, threadId: 'b' } })
    expect([page.status(), page.count(), page.texts()]).toEqual(['ready', 0, []])
    await bench.after(() => run.emit(textDelta(' and late')))
    expect([page.texts(), server.openStreams]).toEqual([[], 1])
    await bench.after(() => page.press('send', undefined, { text: 'in b' }))
    expect([page.texts(), server.requests.map(({ threadId }) => threadId)]).toEqual([
      ['in b', 'In b.'],
      ['a', 'b'],
    ])
    await bench.after(() => run.emit(textEnd(), finish()))
    expect([await run.closed, page.texts()]).toEqual(['finished', ['in b', 'In b.']])
  })

  spec(
    'F35 H23 without a provider, switching back to a thread finds its run and its pending approval',
    async (bench) => {
      const server = scriptedConnection([byHand, [text('In b.')], gated(1), [resolve(), text('Done.')]])
      const use = (threadId: string | undefined) => ({
        options: { connection: server, notify: 'sync' as const, threadId },
      })
      const page = await bench.open(use('a'))
      await bench.after(() => page.press('send', undefined, { text: 'in a' }))
      const run = await server.request(1)
      await bench.after(() => run.emit(textStart(), textDelta('slow')))
      await bench.update(page, use('b'))
      await bench.after(() => page.press('send', undefined, { text: 'in b' }))
      expect(page.texts()).toEqual(['in b', 'In b.'])
      await bench.update(page, use('a'))
      expect([page.status(), page.texts()]).toEqual(['streaming', ['in a', 'slow']])
      await bench.after(() => run.emit(textDelta(' but sure'), textEnd(), finish()))
      expect([page.status(), page.texts()]).toEqual(['ready', ['in a', 'slow but sure']])
      await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
      expect(page.approvals()).toEqual(['a1'])
      await bench.update(page, use('b'))
      expect([page.texts(), page.approvals()]).toEqual([['in b', 'In b.'], []])
      await bench.update(page, use('a'))
      expect([page.status(), page.approvals()]).toEqual(['awaiting-approval', ['a1']])
      await bench.after(() => page.press('approve', 'a1'))
      expect([page.status(), page.texts()]).toEqual(['ready', ['in a', 'slow but sure', 'tidy up', 'Done.']])
      expect(server.requests.map(({ threadId }) => threadId)).toEqual(['a', 'b', 'a', 'a'])
    },
  )

  spec('F35 options that change count for the threads that a page has left, too', async (bench) => {
    const server = scriptedConnection([], { otherwise: [text('Yes.')] })
    const use = (threadId: string, user: string) => ({
      options: { connection: server, notify: 'sync' as const, threadId, forwardedProps: { user } },
    })
    const page = await bench.open(use('a', 'ann'))
    await bench.update(page, use('b', 'ann'))
    await bench.update(page, use('b', 'ben'))
    await bench.update(page, use('a', 'ben'))
    await bench.after(() => page.press('send', undefined, { text: 'in a' }))
    expect(server.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([{ user: 'ben' }])
  })

  for (const kind of ['without', 'below'] as const)
    spec(
      `S4.90 ${kind} a provider, a thread that was left goes on with the options it was shown with`,
      async (bench) => {
        const servers = {
          a: scriptedConnection([], { otherwise: [hold(), text('Yes.')] }),
          b: scriptedConnection([]),
        }
        const finished: string[] = []
        const use = (threadId: 'a' | 'b') => {
          const onFinish = () => finished.push(threadId)
          const whole = { connection: servers[threadId], notify: 'sync' as const, threadId, onFinish }
          const options = { ...whole, forwardedProps: { project: threadId } }
          return kind === 'without' ? { options } : { options: {}, provider: { options } }
        }
        const page = await bench.open(use('a'))
        await bench.after(() => page.press('send', undefined, { text: 'one' }))
        await bench.after(() => page.press('send', undefined, { text: 'two' }))
        await bench.update(page, use('b'))
        await bench.after(() => servers.a.release())
        await bench.after(() => servers.a.release())
        expect(servers.a.requests.map(({ forwardedProps }) => forwardedProps)).toEqual([
          { project: 'a' },
          { project: 'a' },
        ])
        expect([finished, servers.b.requests.length]).toEqual([['a', 'a'], 0])
        await bench.update(page, use('a'))
        expect(page.texts()).toEqual(['one', 'Yes.', 'two', 'Yes.'])
      },
    )

  for (const kind of ['without', 'below'] as const)
    spec(`F35 H23 ${kind} a provider, no threadId is one chat too: coming back finds it`, async (bench) => {
      const server = scriptedConnection([], { otherwise: [text('Yes.')] })
      const options = { connection: server, notify: 'sync' as const }
      const use = (threadId: string | undefined) =>
        kind === 'without'
          ? { options: { ...options, threadId } }
          : { options: {}, provider: { options: { ...options, threadId } } }
      const page = await bench.open(use(undefined))
      await bench.after(() => page.press('send', undefined, { text: 'nameless' }))
      await bench.update(page, use('b'))
      await bench.after(() => page.press('send', undefined, { text: 'in b' }))
      await bench.update(page, use(undefined))
      expect(page.texts()).toEqual(['nameless', 'Yes.'])
      // It has an id by now, and is found by that too.
      const [first] = server.requests
      await bench.update(page, use('b'))
      await bench.update(page, use(first?.threadId))
      expect([page.texts(), first?.threadId === '']).toEqual([['nameless', 'Yes.'], false])
    })

  spec(
    'S3.96 H23 below a provider, switching back to a thread shows its pending approval again',
    async (bench) => {
      const server = scriptedConnection([gated(1), [text('In b.')], [resolve(), text('Done.')]])
      const provider = { options: { connection: server, notify: 'sync' as const, threadId: 'a' } }
      const page = await bench.open({ options: {}, provider })
      await bench.after(() => page.press('send', undefined, { text: 'in a' }))
      expect(page.approvals()).toEqual(['a1'])
      await bench.update(page, { options: { threadId: 'b' }, provider })
      expect([page.status(), page.texts(), page.approvals()]).toEqual(['ready', [], []])
      await bench.after(() => page.press('send', undefined, { text: 'in b' }))
      await bench.update(page, { options: {}, provider })
      expect([page.status(), page.texts(), page.approvals()]).toEqual(['awaiting-approval', ['in a'], ['a1']])
      await bench.after(() => page.press('approve', 'a1'))
      expect([page.status(), page.texts()]).toEqual(['ready', ['in a', 'Done.']])
      expect(server.requests.map(({ threadId }) => threadId)).toEqual(['a', 'b', 'a'])
    },
  )

  spec(
    'S4.90 another threadId of the provider is another client, and going back finds the first',
    async (bench) => {
      const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
      const use = (threadId: string) => ({
        options: {},
        provider: { options: { connection: server, notify: 'sync' as const, threadId } },
      })
      const page = await bench.open(use('a'))
      await bench.after(() => page.press('send', undefined, { text: 'in a' }))
      await bench.update(page, use('b'))
      expect([page.status(), page.texts(), page.approvals()]).toEqual(['ready', [], []])
      await bench.update(page, use('a'))
      await bench.after(() => page.press('approve', 'a1'))
      expect([page.status(), page.texts()]).toEqual(['ready', ['in a', 'Done.']])
    },
  )

  spec('S4.90 another client takes the place of the first, which is let go', async (bench) => {
    const [one, two] = [scriptedConnection([[hold(), text('Late.')]]), scriptedConnection([[text('Two.')]])]
    const [first, second] = [chat({ connection: one }), chat({ connection: two })]
    const listeners = watchListeners(first)
    const page = await bench.open({ client: first })
    await bench.after(() => page.press('send', undefined, { text: 'to the first' }))
    await bench.update(page, { client: second })
    expect([page.texts(), listeners()]).toEqual([[], 0])
    await bench.after(() => one.release())
    await bench.after(() => page.press('send', undefined, { text: 'to the second' }))
    expect(page.texts()).toEqual(['to the second', 'Two.'])
    expect(first.getSnapshot().messages.length).toEqual(2)
  })

  spec(
    'S4.90 a reload with the old messages shows the pending approval, and it can be answered',
    async (bench) => {
      const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
      const client = chat({ connection: server, threadId: 'a' })
      const old = await bench.open({ client })
      await bench.after(() => old.press('send', undefined, { text: 'tidy up' }))
      await bench.close(old)
      const initialMessages: readonly UIMessage[] = structuredClone(client.getSnapshot().messages)
      const options = { connection: server, threadId: 'a', initialMessages, notify: 'sync' as const }
      const page = await bench.open({ options })
      expect([page.status(), page.approvals(), page.call('c1').input, server.requests.length]).toEqual([
        'awaiting-approval',
        ['a1'],
        { path: '1.log' },
        1,
      ])
      await bench.after(() => page.press('approve', 'a1'))
      expect([page.status(), page.call('c1').state, page.texts()]).toEqual([
        'ready',
        'complete',
        ['tidy up', 'Done.'],
      ])
      expect(answersOf(server.requests[1])).toEqual([['a1', { approved: true }]])
    },
  )
}
