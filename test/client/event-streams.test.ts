import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import { webSocket } from '@countersign/client/web-socket'
import type { RunAgentInput } from '@countersign/core'
import { event, finish, text } from '@countersign/testing'
import { describe, expect, expectTypeOf, test, vi } from 'vitest'
import { open } from './foreign-server.js'
import { failOnUnhandledRejections, openChat, openClient, wires } from './open-chat.js'
import { cutAfter, frame, frames, half, serve, story } from './raw-server.js'

failOnUnhandledRejections()

// What a stream of events may contain, over HTTP and sockets, and what is told of it.

describe('F30 a stream as servers send it', () => {
  const open = async (write: (run: RunAgentInput) => string, type = 'text/event-stream') => {
    const { url } = await serve((response, run) => response.setHeader('content-type', type).end(write(run)))
    const client = openClient({ connection: fetchServerSentEvents(url) })
    await client.sendMessage('go')
    return client.getSnapshot()
  }
  const all = (run: RunAgentInput) => story(run).map((one) => frame(one))

  test('an event with empty or blank data is none', async () => {
    const snapshot = await open((run) => all(run).join('data:\n\ndata\n\nevent: ping\ndata:  \n\n'))
    expect(snapshot).toMatchObject({ status: 'ready', error: undefined })
  })

  test('[DONE] after a run that has finished is its end; before that the stream was cut', async () => {
    expect(await open((run) => `${all(run).join('')}data: [DONE]\n\n`)).toMatchObject({ status: 'ready' })
    const cut = await open((run) => `${all(run).slice(0, 3).join('')}data: [DONE]\n\n`)
    expect(cut).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
  })

  test('the media type may be written in any case', async () => {
    expect(await open((run) => all(run).join(''), 'Text/Event-Stream; Charset=UTF-8')).toMatchObject({
      status: 'ready',
    })
    const page = await open(() => '<html>', 'text/html')
    expect(page).toMatchObject({ error: { code: 'not-an-event-stream' } })
  })

  for (const wire of wires) {
    test(`${wire}: RUN_ERROR keeps its reason, whatever comes after it`, async () => {
      for (const after of [
        [event({ type: 'RUN_FINISHED', threadId: 't', runId: 'r' })],
        [event({ type: 'nonsense?', at: 1 })],
        [finish()],
        [],
      ]) {
        const { client, person } = await openChat(wire, [
          [event({ type: 'RUN_ERROR', message: 'The model is overloaded.', code: 'overloaded' }), ...after],
        ])
        const sent = await person.sendMessage('go')
        expect(sent).toMatchObject({
          status: 'failed',
          error: { code: 'run-error', message: 'The model is overloaded.' },
        })
        expect(client.getSnapshot().error).toMatchObject({ code: 'run-error', data: { code: 'overloaded' } })
      }
    })
  }

  test('the id of the last event that has one is asked for, though later events of its read have none', async () => {
    const { asked, url } = await serve(
      (response, run) => {
        cutAfter(
          response,
          half(run)
            .map((one, n) => frame(one, n < 2 ? `e${n}` : undefined))
            .join(''),
        )
      },
      (response, run) => response.end(frames(story({ ...run, ...asked[0]?.run }).slice(3))),
    )
    const client = new ChatClient({ connection: fetchServerSentEvents(url, { rejoin: true }) })
    await client.sendMessage('go')
    await client.retry()
    expect(asked.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'e1'])
    expect(client.getSnapshot().status).toBe('ready')
  })
})

test('F34 onEvent narrows by type, and a CUSTOM event by its name', async () => {
  const names: string[] = []
  const onEvent = vi.fn()
  const { person } = await openChat(
    'in-process',
    [[event({ type: 'CUSTOM', name: 'chart', value: 1 }), event({ type: 'NEWS', at: 1 }), text('So.')]],
    {
      onEvent(given) {
        if (given.type === 'CUSTOM') {
          expectTypeOf(given.name).toEqualTypeOf<string>()
          if (given.name === 'chart') names.push(given.name)
        }
        expectTypeOf(given.type).toExtend<string>()
        onEvent(given.type)
      },
    },
  )
  await person.sendMessage('go')
  expect(names).toEqual(['chart'])
  expect(onEvent.mock.calls.flat()).toEqual(['CUSTOM', 'NEWS'])
})

test('a server that sends AG-UI events over a socket without our frames is named as the error', async () => {
  class BareSocket extends EventTarget {
    readyState = 1
    constructor() {
      super()
      queueMicrotask(() => this.dispatchEvent(new Event('open')))
    }
    send(text: string) {
      const { threadId, runId } = JSON.parse(text).input
      const data = JSON.stringify({ type: 'RUN_STARTED', threadId, runId })
      this.dispatchEvent(new MessageEvent('message', { data }))
    }
    close() {}
  }
  const connection = webSocket('ws://server.test', { WebSocket: BareSocket as never })
  const { client } = open({ connection })
  expect(await client.sendMessage('go')).toMatchObject({
    status: 'failed',
    error: { code: 'malformed-event', message: expect.stringContaining('no frame of a chat') },
  })
})
