import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ChatClient, type Connection } from '@countersign/client'
import { ask, call, hold, scriptedConnection, started, text } from '@countersign/testing'
import { expect, test } from 'vitest'
import { full } from '../full.js'
import { FakeBrowser, quiet } from './fake-browser.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function heap(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/** A server that asks again with every answer, so many times. It keeps nothing of what it is sent. */
function chain(length: number, onRequest: (count: number) => void): Connection {
  let count = 0
  return {
    async *connect({ threadId, runId, resume = [] }) {
      const k = ++count
      onRequest(k)
      yield { type: 'RUN_STARTED', threadId, runId }
      for (const { interruptId } of resume) {
        const toolCallId = interruptId.replace('a', 'c')
        yield { type: 'TOOL_CALL_RESULT', messageId: `t${toolCallId}`, toolCallId, content: '"done"' }
      }
      if (k > length) {
        yield { type: 'RUN_FINISHED', threadId, runId }
        return
      }
      const [toolCallId, input] = [`c${k}`, { path: `${k}.log` }]
      yield { type: 'TOOL_CALL_START', toolCallId, toolCallName: 'delete_file', parentMessageId: `m${k}` }
      yield { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(input) }
      yield { type: 'TOOL_CALL_END', toolCallId }
      const approval = { id: `a${k}`, needsApproval: true, options: ['deny', 'once'] }
      yield {
        type: 'CUSTOM',
        name: 'approval-requested',
        value: { toolCallId, toolName: 'delete_file', input, approval },
      }
      yield { type: 'RUN_FINISHED', threadId, runId }
    },
  }
}

/** Each sends all that was before, so the cost of a chain is the square of its length. */
const chained = full ? 1000 : 300

test.each(['while the stream is open', 'after the stream'])(
  'hundreds of chained approvals, answered %s, make one request each, with flat memory and no deep stack',
  async (when) => {
    const heaps = new Map<number, number>()
    let requests = 0
    let deepest = 0
    Error.stackTraceLimit = Number.POSITIVE_INFINITY
    const client = new ChatClient({
      connection: chain(chained, (count) => {
        requests = count
        deepest = Math.max(deepest, (new Error().stack ?? '').split('\n').length)
        if (count % (chained / 2) === 1) heaps.set(count, heap())
      }),
      notify: 'sync',
      onApprovalRequest: ({ approvalId }) => {
        const answer = () => void client.addToolApprovalResponse({ id: approvalId, approved: true })
        if (when === 'after the stream') setImmediate(answer)
        else answer()
      },
    })
    await client.sendMessage('go')
    await new Promise<void>((done) => {
      const look = () => {
        const { isLoading, messages } = client.getSnapshot()
        const last = messages.at(-1)?.parts.find((part) => part.type === 'tool-call')
        if (!isLoading && last?.id === `c${chained}` && last.state === 'complete') done()
        else setImmediate(look)
      }
      look()
    })
    Error.stackTraceLimit = 10
    const counts = [1, chained / 2 + 1, chained + 1]
    const [begin = 0, middle = 0, end = 0] = counts.map((count) => heaps.get(count))
    console.log(
      `heap at request ${counts}: ${[begin, middle, end].map((bytes) => (bytes / 1e6).toFixed(1))} MB`,
    )
    console.log(`deepest stack: ${deepest} frames`)
    expect(requests).toBe(chained + 1)
    // The conversation itself grows, by two short parts each time; a history kept by each run would grow with its square.
    expect(end - begin).toBeLessThan(Math.max(4 * (middle - begin), 8e6))
    expect(deepest).toBeLessThan(60)
    client.dispose()
  },
)

/** Timers that keep this process or would fire in it. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

test('10,000 mount/unmount cycles leave no listener, timer, channel or lock', async () => {
  const browser = new FakeBrowser()
  let asked = 0
  const expiresAt = '2100-01-01T00:00:00.000Z'
  const server = scriptedConnection([
    [call('c1', 'delete_file'), ask('a1', 'c1', { expiresAt })],
    [text('Late.')],
  ])
  const { client } = browser.open(server, {
    now: () => {
      asked++
      return 0
    },
  })
  await client.sendMessage('go')
  client.detach()
  await quiet()
  const before = timers()
  for (let cycle = 0; cycle < 10_000; cycle++) {
    const detach = client.attach()
    // As fast as it goes, after the conversation is here, and somewhere in between.
    if (cycle % 10 === 0) await quiet()
    else if (cycle % 3 === 0) await undefined
    detach()
    detach()
    if (cycle % 7 === 0) await quiet()
  }
  await quiet()
  expect(browser.openChannels).toBe(0)
  expect(browser.lockRequests).toBe(0)
  expect(timers()).toBeLessThanOrEqual(before)
  expect(client.getSnapshot().pendingApprovals).toHaveLength(1)
  asked = 0
  client.setMessages(client.getSnapshot().messages.slice(0, 1))
  await quiet()
  expect(asked, 'a listener that stayed would look at the clock').toBe(0)
  expect(server.requests).toHaveLength(1)
  expect([browser.openChannels, browser.lockRequests]).toEqual([0, 0])
  const detach = client.attach()
  await quiet()
  expect([browser.openChannels, browser.lockRequests]).toEqual([1, 1])
  detach()
  await quiet()
  expect([browser.openChannels, browser.lockRequests]).toEqual([0, 0])
})

test('S4.69 pages that come and go in the middle of a run lose and cancel nothing, and leave nothing', async () => {
  const browser = new FakeBrowser()
  const server = scriptedConnection([[started(), hold(), text('Here.')]])
  const { client } = browser.open(server)
  let heard = 0
  const sent = client.sendMessage('go')
  await server.held()
  client.detach()
  for (let cycle = 0; cycle < 500; cycle++) {
    const detach = client.attach()
    const leave = client.subscribe(() => heard++)
    if (cycle % 5 === 0) await quiet()
    leave()
    detach()
  }
  heard = 0
  expect(browser.openChannels).toBe(1)
  server.release()
  expect(await sent).toEqual({ status: 'sent' })
  await quiet()
  expect(heard).toBe(0)
  expect([browser.openChannels, browser.lockRequests]).toEqual([0, 0])
  expect(browser.persistence.texts.get('t')).toContain('Here.')
})

test('S4.69 disposing in the middle of a run ends it: nothing late is shown, nothing is left', async () => {
  const browser = new FakeBrowser()
  const server = scriptedConnection([[started(), hold(), text('Late.')]], { deaf: true })
  const { client } = browser.open(server)
  void client.sendMessage('go')
  await server.held()
  client.dispose()
  const before = client.getSnapshot()
  server.release()
  await quiet()
  expect(client.getSnapshot()).toBe(before)
  expect([browser.openChannels, browser.lockRequests]).toEqual([0, 0])
})
