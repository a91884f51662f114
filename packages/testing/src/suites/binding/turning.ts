import { scriptedConnection } from '../../connection.js'
import { finish, gated, resolve, text, textDelta, textEnd, textStart } from '../../events.js'
import { byHand } from '../../script.js'
import { chat, type Expect, type Spec } from './bench.js'

/** The turns that a page shows, and which of them keep their identity. */
export function turning(spec: Spec, expect: Expect): void {
  spec(
    'H25 an answer of several steps is one turn, in which the approval of its first step stays visible',
    async (bench) => {
      const server = scriptedConnection([gated(1), [resolve(), ...gated(2)], [resolve(), text('Both gone.')]])
      const client = chat({ connection: server })
      const page = await bench.open({ client })
      expect(page.turns()).toEqual([])
      await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
      expect(page.turns()).toEqual(['text', 'approval-requested'])
      await bench.after(() => page.press('approve', 'a1'))
      expect(page.turns()).toEqual(['text', 'complete tool-result approval-requested'])
      await bench.after(() => page.press('approve', 'a2'))
      expect(page.turns()).toEqual(['text', 'complete tool-result complete tool-result text'])
      const { messages } = client.getSnapshot()
      expect(page.mounted.turns().map((turn) => [turn.id, turn.role, turn.messages.length])).toEqual([
        [messages[0]?.id, 'user', 1],
        [messages[1]?.id, 'assistant', messages.length - 1],
      ])
    },
  )

  spec('H25 an answer that streams changes its own turn, and no other', async (bench) => {
    const server = scriptedConnection([gated(1), [resolve(), text('Gone.')], byHand])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    await bench.after(() => page.press('approve', 'a1'))
    await bench.after(() => page.press('send', undefined, { text: 'more' }))
    const run = await server.request(3)
    await bench.after(() => run.emit(textStart(), textDelta('Good')))
    const before = page.mounted.turns()
    await bench.after(() => run.emit(textDelta(' day')))
    const now = page.mounted.turns()
    expect(page.turns()).toEqual(['text', 'complete tool-result text', 'text', 'text'])
    expect(now.map((turn, at) => turn === before[at])).toEqual([true, true, true, false])
    await bench.after(() => run.emit(textEnd(), finish()))
  })

  spec('the list of turns is the same while no message changes', async (bench) => {
    const server = scriptedConnection([byHand])
    const page = await bench.open({ client: chat({ connection: server }) })
    await bench.after(() => page.press('send', undefined, { text: 'hello' }))
    const run = await server.request(1)
    await bench.after(() => run.emit(textStart(), textDelta('Good')))
    const before = page.mounted.turns()
    await bench.after(() => page.press('send', undefined, { text: 'and more' }))
    expect([page.queue(), page.mounted.turns() === before]).toEqual([['and more'], true])
    await bench.after(() => page.press('stop'))
    expect(page.turns()).toEqual(['text', 'text'])
  })

  spec(
    'H25 asking for the answer of a turn again drops all of its steps, by the id of the turn',
    async (bench) => {
      const server = scriptedConnection([gated(1), [resolve(), text('Gone.')], [text('Again.')]])
      const client = chat({ connection: server })
      const page = await bench.open({ client })
      await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
      await bench.after(() => page.press('approve', 'a1'))
      const messageId = page.mounted.turns().at(-1)?.id ?? ''
      await bench.after(() => page.mounted.chat().regenerate({ messageId }))
      expect([page.turns(), page.texts()]).toEqual([
        ['text', 'text'],
        ['tidy up', 'Again.'],
      ])
    },
  )
}
