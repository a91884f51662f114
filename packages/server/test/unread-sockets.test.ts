import {
  createAgent,
  type Limits,
  type Model,
  memoryLedger,
  type ServerSocket,
  serveSocket,
} from '@countersign/server'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { input, user } from './support.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
async function turns(count: number): Promise<void> {
  for (let done = 0; done < count; done++) await turn()
}

let said = 0
/** A model that says a word each turn of the event loop. */
const model: Model = {
  id: 'test/m',
  async *stream(_, { signal }) {
    for (said = 0; !signal.aborted && said < 20_000; said++) {
      await turn()
      yield { type: 'text-delta', delta: 'word ' }
    }
    yield { type: 'finish', reason: 'stop' }
  },
}

const agentWith = (limits: Limits = {}) =>
  createAgent({ model, approvals: { ledger: memoryLedger() }, limits, warn: () => {}, onError: () => {} })

/** A socket whose peer takes what it is sent only when it is told to. */
function openPeer(agent: ReturnType<typeof agentWith>, subject = 'ann') {
  const listeners: { readonly type: string; readonly act: (given: never) => void }[] = []
  const tell = (type: string, given: unknown) => {
    for (const listener of listeners) if (listener.type === type) listener.act(given as never)
  }
  const peer = {
    /** Bytes and frames that wait. */
    waiting: 0,
    frames: 0,
    last: '',
    closed: '',
    /** Takes so many bytes, or all. */
    take(bytes = Number.POSITIVE_INFINITY): void {
      peer.waiting -= Math.min(bytes, peer.waiting)
      if (peer.waiting === 0) peer.frames = 0
    },
    request: (frame: unknown) => tell('message', { data: JSON.stringify(frame) }),
    /** The platform answers it by itself. */
    ping(payload: number) {
      peer.waiting += payload + 2
      tell('ping', { length: payload })
    },
    leave() {
      socket.readyState = 3
      tell('close', undefined)
    },
  }
  const socket = {
    readyState: 1,
    get bufferedAmount() {
      return peer.waiting
    },
    send(data: string) {
      peer.waiting += data.length
      peer.frames++
      peer.last = data
    },
    close(code?: number, reason?: string) {
      socket.readyState = 2
      peer.closed = `${code} ${reason}`
    },
    addEventListener: (type: string, act: (given: never) => void) => void listeners.push({ type, act }),
    on: (type: string, act: (given: never) => void) => void listeners.push({ type, act }),
  } satisfies ServerSocket & { readyState: number }
  serveSocket(agent, socket, new Request('http://localhost/'), { context: () => ({ subject }) })
  onTestFinished(peer.leave)
  return peer
}

/** An answer to nothing: it is refused, with a short reply. */
const badAnswer = { type: 'answer', id: 'a', resume: [] }

async function request(peer: ReturnType<typeof openPeer>, times: number): Promise<void> {
  for (let at = 0; at < times; at++) {
    peer.request(badAnswer)
    if (at % 100 === 99) await turn()
  }
  await turns(5)
}

test('a connection that takes nothing for a minute is closed, also if only short replies wait in it', async () => {
  const peer = openPeer(agentWith())
  await request(peer, 10)
  expect(peer.last).toContain('refused')
  await vi.advanceTimersByTimeAsync(50_000)
  expect(peer.closed).toBe('')
  await vi.advanceTimersByTimeAsync(20_000)
  expect(peer.closed).toBe('1008 reader-too-slow')
  expect(vi.getTimerCount()).toBe(0)
})

test('a connection that takes a little now and then stays, although as much is sent', async () => {
  const peer = openPeer(agentWith())
  await request(peer, 10)
  for (let at = 0; at < 20; at++) {
    await vi.advanceTimersByTimeAsync(10_000)
    peer.take(1)
    await request(peer, 1)
  }
  expect(peer.closed).toBe('')
  peer.take()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(vi.getTimerCount()).toBe(0)
})

test('short replies that wait unread count with what they cost in memory: who keeps requesting is closed', async () => {
  const peer = openPeer(agentWith())
  await request(peer, 1500)
  expect(peer.closed).toBe('')
  await request(peer, 1500)
  expect(peer.closed).toBe('1008 too-many-requests')
  expect(peer.waiting).toBeLessThan(1024 * 1024)
})

test('the same for the answers to pings', async () => {
  const peer = openPeer(agentWith())
  for (let at = 0; at < 3000; at++) peer.ping(10)
  expect(peer.closed).toBe('1008 too-many-requests')
})

test('who reads can request as often as they like', async () => {
  const peer = openPeer(agentWith())
  for (let at = 0; at < 10; at++) {
    await request(peer, 1000)
    peer.take()
  }
  expect(peer.closed).toBe('')
})

test('short events that wait unread count with what they cost in memory: their run waits', async () => {
  const peer = openPeer(agentWith())
  peer.request({ type: 'run', input: input([user('go')]) })
  await turns(12_000)
  const most = said
  expect(peer.frames).toBeGreaterThan(1000)
  expect(peer.frames).toBeLessThan(3000)
  await turns(500)
  expect(said).toBe(most)
  peer.take()
  await vi.advanceTimersByTimeAsync(1000)
  await turns(500)
  expect(said).toBeGreaterThan(most)
})

test('what waits unread in all sockets of one user is counted together, and has a limit', async () => {
  const MIB = 1024 * 1024
  const agent = agentWith({ arrivingBytes: { perOwner: MIB, total: 4 * MIB } })
  const mallory = Array.from({ length: 12 }, () => openPeer(agent, 'mallory'))
  await turns(5)
  for (const peer of mallory) await request(peer, 500)
  const isClosed = ({ closed }: { closed: string }) => closed === '1013 too-many-requests'
  const closed = mallory.filter(isClosed)
  expect(closed.length).toBeGreaterThan(6)
  expect(closed.length).toBeLessThan(12)
  const ann = openPeer(agent, 'ann')
  await request(ann, 500)
  expect(ann.closed).toBe('')
  // What waits counts until it has been taken, or its socket is gone.
  for (const peer of mallory) if (isClosed(peer)) peer.leave()
  for (const peer of mallory) peer.take()
  await vi.advanceTimersByTimeAsync(2000)
  const next = openPeer(agent, 'mallory')
  await request(next, 1200)
  expect(next.closed).toBe('')
})
