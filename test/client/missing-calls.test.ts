import type { Connection } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { checkResponse } from '@countersign/client/response-schema'
import { passMacrotasks } from '@countersign/testing'
import { expect, test, vi } from 'vitest'
import { memoryPersistence } from './fake-browser.js'
import {
  ask,
  askBare,
  call,
  type Event,
  finish,
  open,
  raise,
  resultOf,
  says,
  server,
  start,
  startOpen,
  startWith,
} from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// Requests whose call did not arrive, or not as a whole.

test('a request for a call that did not arrive is shown with the name and arguments that it carries', async () => {
  const { pending, calls, resume, approve } = await start((input) => [raise(input, says(1))])
  expect(pending()).toEqual([['a1', 'c1', { n: 1 }]])
  expect(calls()).toMatchObject([{ name: 'act', arguments: '{"n":1}', state: 'approval-requested' }])
  expect(await approve('a1')).toEqual({ status: 'sent' })
  expect(resume()).toEqual([[], ['a1 yes']])
})

test('a request for a call that did not arrive, and that does not say what it is about, is shown and can only be denied', async () => {
  const { client, pending, warnings, resume } = await startWith({ checkResponse }, (input) => [
    raise(input, { metadata: { countersign: { token: 'T' } } }),
  ])
  expect(pending()).toEqual([])
  expect(client.getSnapshot().interrupts).toMatchObject([{ id: 'a1', toolCallId: 'c1' }])
  expect(warnings.join()).toContain('"c1" did not arrive')
  expect(await client.respondToInterrupt({ id: 'a1', payload: { approved: true } })).toMatchObject({
    status: 'refused',
    code: 'approval-malformed',
  })
  expect(await client.respondToInterrupt({ id: 'a1', payload: { approved: false } })).toEqual({
    status: 'sent',
  })
  expect(resume()).toEqual([[], ['a1 no']])
})

test('a call that the page has with the same id from an earlier run is not taken for one that did not arrive', async () => {
  const { client, pending } = await start(
    (input) => [...call('c1', 1), resultOf('c1'), finish(input)],
    (input) => [raise(input, says(2))],
  )
  await client.sendMessage('again')
  expect(pending()).toEqual([['a1', 'c1', { n: 2 }]])
})

test('an open run that asks about a call whose arguments were lost gets its answer', async () => {
  const answers: unknown[] = []
  const [begin, , end] = call('c1', 1) as [Event, Event, Event]
  const { connection } = server(async function* (input) {
    yield* [begin, ask('c1', 'a1', 1), askBare('c2', { id: 'a2' })]
    await vi.waitUntil(() => answers.length === 2)
    yield* [end, finish(input)]
  })
  const answer: Connection['answer'] = async ({ resume }) => void answers.push(resume)
  const { client, pending, approve, sent } = await startOpen({ ...connection, answer })
  expect(pending()).toEqual([['a1', 'c1', { n: 1 }]])
  const results = [approve('a1'), client.respondToInterrupt({ id: 'a2', cancel: true })]
  expect(await sent).toEqual({ status: 'sent' })
  expect(await Promise.all(results)).toEqual([{ status: 'sent' }, { status: 'sent' }])
  expect(answers).toMatchObject([[{ interruptId: 'a1' }], [{ interruptId: 'a2', status: 'cancelled' }]])
  expect(client.getSnapshot().interrupts).toEqual([])
})

test('a request without its call that an open run raised stays open when that run breaks, or ends without naming it', async () => {
  for (const end of ['cut', 'finished']) {
    const { client, interrupts, requests } = await start((input) => [
      askBare('c1', { id: 'a1', token: 'T' }),
      end === 'cut' ? 'cut' : finish(input),
    ])
    expect(interrupts()).toEqual(['a1'])
    expect(await client.respondToInterrupt({ id: 'a1', cancel: true })).toEqual({ status: 'sent' })
    expect(requests.at(-1)?.resume).toEqual([
      { interruptId: 'a1', status: 'cancelled', metadata: { countersign: { token: 'T' } } },
    ])
  }
})

test.each([
  ['an approval request', [...call('c1', 1), ask('c1', 'a1', 1)]],
  ['a request for a call that did not arrive', [ask('c1', 'a1', 1)]],
])('a page that is closed right after %s appeared finds it again', async (_, events) => {
  const kept = memoryPersistence()
  const { load, save, remove } = kept
  const persistence = persistent({ load, save, remove }, { saveEvery: 60_000 })
  const { connection } = server(async function* () {
    yield* events
    await new Promise(() => {})
  })
  const chat = open({ connection, persistence })
  const asked = ({ pending, interrupts }: ReturnType<typeof open>) => pending().length + interrupts().length
  void chat.client.sendMessage('pay')
  await vi.waitUntil(() => asked(chat) === 1)
  await passMacrotasks(2)
  const texts = new Map(kept.texts)
  chat.client.stop()
  const later = memoryPersistence()
  for (const [id, text] of texts) later.texts.set(id, text)
  const next = open({ connection, persistence: later })
  await next.client.restore()
  expect(asked(next)).toBe(1)
})

test.each([
  ['says its arguments is shown with those', says(2), [['a1', 'c1', { n: 2 }]], []],
  ['does not say them can only be denied', {}, [], ['a1']],
])(
  'a request for a call that was lost, whose id a broken run of an earlier turn used, and that %s',
  async (_, interrupt, shown, unseen) => {
    const { client, pending, interrupts } = await start(
      () => [...call('c1', 1), 'cut'],
      (input) => [raise(input, interrupt)],
    )
    await client.sendMessage('no, delete 2')
    expect(pending()).toEqual(shown)
    expect(interrupts()).toEqual(unseen)
  },
)

test.each([
  ['says no arguments, can only be denied', {}, [], ['a1']],
  ['says its arguments, is shown with those', says(2), [['a1', 'c1', { n: 2 }]], []],
  ['says the same arguments, is shown', says(1), [['a1', 'c1', { n: 1 }]], []],
])('after retry(), a request for a call of the broken run that %s', async (_, interrupt, shown, deniable) => {
  const chat = await start(
    () => [...call('c1', 1), 'cut'],
    (input) => [raise(input, interrupt)],
  )
  await chat.client.retry()
  expect(chat.pending()).toEqual(shown)
  expect(chat.interrupts()).toEqual(deniable)
  await chat.approve('a1')
  expect(chat.resume()).toEqual([[], [], ...(shown.length > 0 ? [['a1 yes']] : [])])
})
