import { scriptedConnection } from '../../connection.js'
import {
  call,
  cut,
  error,
  failure,
  finish,
  gated,
  hold,
  resolve,
  text,
  textDelta,
  textEnd,
  textStart,
} from '../../events.js'
import { byHand } from '../../script.js'
import { answersOf } from './answering.js'
import { chat, type Expect, type Spec } from './bench.js'

export function running(spec: Spec, expect: Expect): void {
  spec('S4.82 messages, status, loading and the selected count follow the run', async (bench) => {
    const server = scriptedConnection([byHand])
    const page = await bench.open({ client: chat({ connection: server }) })
    const seen = () => [page.status(), page.loading(), page.count(), page.texts()]
    expect(seen()).toEqual(['ready', false, 0, []])
    await bench.after(() => page.press('send', undefined, { text: 'hello' }))
    expect(seen()).toEqual(['submitted', true, 1, ['hello']])
    const run = await server.request(1)
    await bench.after(() => run.emit(textStart(), textDelta('Good')))
    expect(seen()).toEqual(['streaming', true, 2, ['hello', 'Good']])
    await bench.after(() => run.emit(textDelta(' day')))
    expect(seen()).toEqual(['streaming', true, 2, ['hello', 'Good day']])
    await bench.after(() => run.emit(textEnd(), finish()))
    expect(seen()).toEqual(['ready', false, 2, ['hello', 'Good day']])
  })

  spec('S4.82 an error of the run is shown, retry repeats it, and the error is gone', async (bench) => {
    const server = scriptedConnection([[error('The model is away.')], [hold(), text('Here.')]])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'hello' }))
    expect([page.status(), page.loading(), page.error().includes('The model is away.')]).toEqual([
      'error',
      false,
      true,
    ])
    await bench.after(() => page.press('retry'))
    expect([page.loading(), page.error()]).toEqual([true, ''])
    await bench.after(() => server.release())
    expect([page.status(), page.texts()]).toEqual(['ready', ['hello', 'Here.']])
  })

  spec('S4.90 an answer whose request broke is kept, and retry sends it unchanged', async (bench) => {
    const server = scriptedConnection([gated(1), [cut()], [resolve(), text('Done.')]])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    await bench.after(() => page.press('deny', 'a1', { reason: 'not now' }))
    expect([page.status(), page.error() !== '', page.call('c1').state, page.call('c1').reason]).toEqual([
      'error',
      true,
      'approval-responded',
      'not now',
    ])
    await bench.after(() => page.press('retry'))
    expect([page.status(), page.error(), page.call('c1').state]).toEqual(['ready', '', 'denied'])
    expect(answersOf(server.requests[2])).toEqual(answersOf(server.requests[1]))
  })

  spec('S4.90 a tool that failed shows its error', async (bench) => {
    const server = scriptedConnection([
      [call('c1', 'delete_file', { path: '1.log' }), failure('c1', 'The disk is full.'), text('Sorry.')],
    ])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    expect([page.call('c1').state, page.call('c1').error]).toEqual(['error', 'The disk is full.'])
  })

  spec('S4.90 stop ends the run at once, and nothing late is shown', async (bench) => {
    const server = scriptedConnection([byHand, [text('Again.')]], { deaf: true })
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'hello' }))
    const run = await server.request(1)
    await bench.after(() => run.emit(textStart(), textDelta('Good')))
    await bench.after(() => page.press('stop'))
    expect([page.status(), page.loading()]).toEqual(['ready', false])
    await bench.after(() => run.emit(textDelta(' day'), textEnd(), finish()))
    expect([page.status(), page.texts()]).toEqual(['ready', ['hello', 'Good']])
    await bench.after(() => page.press('send', undefined, { text: 'once more' }))
    expect([page.status(), page.texts()]).toEqual(['ready', ['hello', 'Good', 'once more', 'Again.']])
  })

  spec('S4.90 a message sent while a run is open is shown in the queue, and then sent', async (bench) => {
    const server = scriptedConnection([[hold(), text('One.')], [text('Two.')]])
    const client = chat({ connection: server })
    const page = await bench.open({ client })
    await bench.after(() => page.press('send', undefined, { text: 'first' }))
    await bench.after(() => page.press('send', undefined, { text: 'second' }))
    await bench.after(() => page.press('send', undefined, { text: 'third' }))
    expect([page.queue(), page.texts(), server.requests.length]).toEqual([['second', 'third'], ['first'], 1])
    const third = client.getSnapshot().queue[1]
    await bench.after(() => page.mounted.chat().cancelQueued(third?.id ?? ''))
    expect(page.queue()).toEqual(['second'])
    await bench.after(() => server.release())
    expect([page.queue(), page.texts()]).toEqual([[], ['first', 'One.', 'second', 'Two.']])
  })

  spec('S4.90 clear empties the page in the middle of a run', async (bench) => {
    const server = scriptedConnection([[...gated(1), hold()]])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    expect([page.count(), page.approvals()]).toEqual([2, ['a1']])
    await bench.after(() => page.press('clear'))
    expect([page.status(), page.count(), page.texts(), page.approvals()]).toEqual(['ready', 0, [], []])
  })
}
