import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import { gated, hold, scriptedConnection, text, until } from '@countersign/testing'
import { scriptedServer } from '@countersign/testing/server'
import { expect, onTestFinished, test } from 'vitest'

const runs = [gated(1)]
const reason = 'The script ended too early: request 2 arrived, and the script has 1 run. Add a run'
const asked = 'request 2   2 messages, resume a1: {"approved":true}'

async function overHttp() {
  const server = await scriptedServer(runs)
  onTestFinished(() => server.close())
  return fetchServerSentEvents(server.url)
}

test.each([
  ['in the same process', () => scriptedConnection(runs)],
  ['over HTTP', overHttp],
])(
  'a script that ends too early fails what waits for the chat at once, with what happened: %s',
  async (_, connect) => {
    const client = new ChatClient({ connection: await connect(), onError: () => {} })
    await client.sendMessage('Delete 1.log')
    void client.addToolApprovalResponse({ id: 'a1', approved: true })
    const waiting = until(client, ({ status }) => status === 'ready')
    await expect(waiting).rejects.toThrow(reason)
    await expect(waiting).rejects.toThrow(asked)
  },
)

test('a chat that shows its error says that the script ended too early', async () => {
  const client = new ChatClient({ connection: scriptedConnection([]), onError: () => {} })
  await client.sendMessage('Hello.')
  expect(client.getSnapshot().error?.message).toContain('request 1 arrived, and the script has 0 runs')
})

test('a script that has ended before its hold says so at once', async () => {
  const server = scriptedConnection([[text('Hello.')]])
  const client = new ChatClient({ connection: server })
  await client.sendMessage('Hello.')
  await expect(server.held('pause')).rejects.toThrow('it did not come to hold("pause")')
})

test('a hold that was reached is not forgotten when the script ends', async () => {
  const server = scriptedConnection([[hold('pause'), text('Hello.')]])
  const client = new ChatClient({ connection: server })
  server.release('pause')
  await client.sendMessage('Hello.')
  await server.held('pause')
})
