import type { UIMessage } from '@countersign/client'
import { scriptedConnection } from '../../connection.js'
import { finish, gated, resolve, textDelta, textEnd, textStart } from '../../events.js'
import { byHand } from '../../script.js'
import { chat, type Expect, type Spec } from './bench.js'

const HISTORY = 200
const DELTAS = 1000
const BATCH = 200

/** Only what changed is rendered again. `report` receives the counts. */
export function updating(spec: Spec, expect: Expect, report: (line: string) => void): void {
  spec(
    `S4.90 ${HISTORY} messages of history, ${DELTAS} deltas: only the component of the streaming message updates`,
    async (bench) => {
      const server = scriptedConnection([byHand])
      const page = await bench.open({
        client: chat({ connection: server, initialMessages: history(HISTORY) }),
      })
      await bench.after(() => page.press('send', undefined, { text: 'go' }))
      const run = await server.request(1)
      await bench.after(() => run.emit(textStart(), textDelta('0')))
      const before = new Map(page.mounted.renders())
      const elements = [...page.mounted.container.querySelectorAll('[data-message]')]
      const expected = ['0']
      for (let at = 1; at <= DELTAS; at += BATCH) {
        const batch = Array.from({ length: BATCH }, (_, more) => `.${at + more}`)
        expected.push(...batch)
        await bench.after(() => run.emit(...batch.map(textDelta)))
      }
      const after = page.mounted.renders()
      const streaming = lastMessageId(elements)
      const others = [...after].filter(([id, count]) => id !== streaming && count !== before.get(id))
      const own = (after.get(streaming) ?? 0) - (before.get(streaming) ?? 0)
      const words = `${HISTORY} messages of history, ${DELTAS} deltas`
      report(`${words}: ${own} updates of the streaming message, ${others.length} of others`)
      expect(others).toEqual([])
      expect(own === 0).toEqual(bench.harness.runsOnce ?? false)
      expect([before.size, elements.length]).toEqual([HISTORY + 2, HISTORY + 2])
      expect(page.texts().at(-1)).toEqual(expected.join(''))
      const same = [...page.mounted.container.querySelectorAll('[data-message]')]
      expect(same.every((element, at) => element === elements[at])).toEqual(true)
      await bench.after(() => run.emit(textEnd(), finish()))
    },
  )

  spec('S4.90 an answer and a result update only the message they belong to', async (bench) => {
    const server = scriptedConnection([gated(1), byHand])
    const page = await bench.open({ client: chat({ connection: server, initialMessages: history(20) }) })
    await bench.after(() => page.press('send', undefined, { text: 'tidy up' }))
    const before = new Map(page.mounted.renders())
    const owner = page.element('[data-call="c1"]')?.closest('[data-message]')?.getAttribute('data-message')
    await bench.after(() => page.press('approve', 'a1'))
    const run = await server.request(2)
    await bench.after(() => run.emit(resolve(), finish()))
    expect(page.call('c1').state).toEqual('complete')
    const others = [...page.mounted.renders()].filter(
      ([id, count]) => id !== owner && count !== before.get(id),
    )
    expect(others).toEqual([])
  })
}

function history(count: number): readonly UIMessage[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `h${at}`,
    role: at % 2 === 0 ? 'user' : 'assistant',
    parts: [{ type: 'text', text: `message ${at}` }],
  }))
}

function lastMessageId(elements: readonly Element[]): string {
  return elements.at(-1)?.getAttribute('data-message') ?? ''
}
