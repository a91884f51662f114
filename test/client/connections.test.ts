import { fetchHttpStream, fetchServerSentEvents, stream } from '@countersign/client'
import { webSocket } from '@countersign/client/web-socket'
import { scriptedConnection } from '@countersign/testing'
import { scriptedServer, scriptedSocket } from '@countersign/testing/server'
import { describeConnection } from '@countersign/testing/suites'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

const runner = { test, expect }

describeConnection(
  'fetchServerSentEvents',
  async (runs) => {
    const server = await scriptedServer(runs)
    return { server, connection: fetchServerSentEvents(server.url), close: () => server.close() }
  },
  runner,
)

describeConnection(
  'fetchHttpStream',
  async (runs) => {
    const server = await scriptedServer(runs)
    return { server, connection: fetchHttpStream(server.url), close: () => server.close() }
  },
  runner,
)

describeConnection(
  'stream',
  (runs) => {
    const server = scriptedConnection(runs)
    const connection = stream(async function* (input, options) {
      // The script writes what a server would send, legal or not.
      for await (const event of server.connect(input, options)) yield event as never
    })
    return { server, connection }
  },
  runner,
)

describeConnection(
  'webSocket',
  async (runs) => {
    const server = await scriptedSocket(runs)
    return { server, connection: webSocket(server.url, { WebSocket }), close: () => server.close() }
  },
  runner,
)
