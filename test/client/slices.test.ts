import { ChatClient, stream } from '@countersign/client'
import type { AGUIEvent } from '@countersign/core'
import { afterEach, expect, test, vi } from 'vitest'

const DELTAS = 2_000

afterEach(() => vi.restoreAllMocks())

/** A chat whose answer is there all at once, on a clock by which every event takes a millisecond. */
function openBuffered() {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 64
    return now
  })
  const client = new ChatClient({
    notify: 'sync',
    connection: stream(async function* ({ threadId, runId }): AsyncGenerator<AGUIEvent> {
      yield { type: 'RUN_STARTED', threadId, runId }
      yield { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' }
      for (let at = 0; at < DELTAS; at += 1) {
        yield { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: `${at} ` }
      }
      yield { type: 'TEXT_MESSAGE_END', messageId: 'm' }
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } }
    }),
  })
  client.attach()
  const said = () => {
    const [part] = client.getMessage('m')?.parts ?? []
    return part?.type === 'text' ? part.text : ''
  }
  return { client, said }
}

test('an answer that is there at once is applied in slices, in order, and none of it is lost', async () => {
  const { client, said } = openBuffered()
  let turns = 0
  let counting = true
  const turn = () => {
    turns += 1
    if (counting) setImmediate(turn)
  }
  setImmediate(turn)
  expect(await client.sendMessage('go')).toEqual({ status: 'sent' })
  counting = false
  expect(said()).toBe(Array.from({ length: DELTAS }, (_, at) => `${at} `).join(''))
  expect(turns, 'the page had its turn between the slices').toBeGreaterThan(5)
  client.dispose()
})

test('stop between two slices applies nothing more, and the chat goes on', async () => {
  const { client, said } = openBuffered()
  const sent = client.sendMessage('go')
  await new Promise((resolve) => setImmediate(resolve))
  const before = said()
  expect(before.length).toBeGreaterThan(0)
  client.stop()
  await sent
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect(said()).toBe(before)
  expect(said().startsWith('0 1 2 ')).toBe(true)
  expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  client.dispose()
})
