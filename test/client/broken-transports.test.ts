import {
  ChatClient,
  type Connection,
  fetchServerSentEvents,
  nextStep,
  postAnswers,
} from '@countersign/client'
import { webSocket } from '@countersign/client/web-socket'
import { createAgent, memoryLedger, memoryRunLog, type RunLog } from '@countersign/server'
import { passMacrotasks, until } from '@countersign/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { call, calls, mailTool, pendingId, says, scriptedModel, states } from '../engine/engine.js'
import { serve } from '../engine/wires.js'
import { full } from '../full.js'
import { openNetwork, type Way } from './network.js'
import { failOnUnhandledRejections } from './open-chat.js'

/** A person, an agent that asks, and a network between them that breaks around the answer. */

failOnUnhandledRejections()

interface Transport {
  readonly connection: (port: number) => Connection
  /** Whether the run waits for the answer, and takes it while it is open. */
  readonly live: boolean
  readonly rejoin: boolean
}

const sse = (rejoin: boolean) => (port: number) =>
  fetchServerSentEvents(`http://127.0.0.1:${port}/`, { rejoin })
const posted = (rejoin: boolean) => (port: number) => ({
  ...sse(rejoin)(port),
  ...postAnswers(`http://127.0.0.1:${port}/answers`),
})
const socket = (rejoin: boolean) => (port: number) =>
  webSocket(`ws://127.0.0.1:${port}/`, { WebSocket, rejoin })

const transports = {
  requests: { connection: sse(false), live: false, rejoin: false },
  'requests, taken up again': { connection: sse(true), live: false, rejoin: true },
  'posted answers': { connection: posted(false), live: true, rejoin: false },
  'posted answers, taken up again': { connection: posted(true), live: true, rejoin: true },
  'a socket': { connection: socket(false), live: true, rejoin: false },
  'a socket, taken up again': { connection: socket(true), live: true, rejoin: true },
} as const satisfies Readonly<Record<string, Transport>>

type Name = keyof typeof transports
const names = (wanted: (transport: Transport) => boolean) =>
  (Object.keys(transports) as Name[]).filter((name) => wanted(transports[name]))
const all = names(() => true)

/** A log that can forget what it has, and tells how many runs have ended. */
function watchedLog() {
  const log = memoryRunLog()
  const watched = { ended: 0, forgets: false }
  const runLog: RunLog = {
    async begin(key) {
      const writer = await log.begin(key)
      const end = async () => {
        await writer.end()
        watched.ended++
      }
      return { append: writer.append, end }
    },
    read: async (...which) => (watched.forgets ? undefined : log.read(...which)),
  }
  return { runLog, watched }
}

async function open(name: Name, { goOnFor = 60_000, confirm = async () => true } = {}) {
  const { connection, live } = transports[name]
  const { mail, sent } = mailTool()
  const { runLog, watched } = watchedLog()
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'user' ? calls(call('c1', 'send_email', { to: 'ann' })) : says('Sent.'),
  )
  const agent = createAgent({
    model,
    tools: [mail],
    warn: () => {},
    runLog,
    approvals: { ledger: memoryLedger(), confirm },
  })
  const { server, url } = await serve(agent, live, goOnFor)
  const connected = () =>
    new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))
  const network = await openNetwork(url)
  const chat = new ChatClient({ connection: connection(Number(network.port)), threadId: 'thread' })
  onTestFinished(() => chat.dispose())
  return { chat, network, sent, log: watched, connected }
}

type Opened = Awaited<ReturnType<typeof open>>

/** Until the person is asked; where nothing waits for the answer, until that run is over. */
async function asked({ chat }: Opened, name: Name): Promise<void> {
  void chat.sendMessage('go')
  await until(chat, ({ pendingApprovals, isLoading }) => {
    return pendingApprovals.length === 1 && (transports[name].live || !isLoading)
  })
}

const approve = ({ chat }: Opened) =>
  chat.addToolApprovalResponse({ id: pendingId(chat), approved: true }).then(({ status }) => status)

function delivery({ chat }: Opened) {
  const parts = chat.getSnapshot().messages.flatMap((message) => message.parts)
  return parts.flatMap((part) => (part.type === 'tool-call' ? [part.approval?.delivery] : []))
}

const broken = ({ chat }: Opened) => until(chat, ({ status, isLoading }) => status === 'error' && !isLoading)

/** What retry() leads to: the answer took effect once, and nothing is open any more. */
async function settledBy(opened: Opened, retry: () => Promise<unknown>) {
  const { chat, sent } = opened
  await retry()
  await until(chat, ({ isLoading, status }) => !isLoading && status === 'ready')
  expect([states(chat), delivery(opened), sent]).toEqual([['send_email:complete'], ['settled'], ['ann']])
  expect(chat.getSnapshot()).toMatchObject({ error: undefined, pendingApprovals: [] })
}

describe('an answer', () => {
  test.each(names(({ live }) => live))(
    'that is given after its run broke is sent by itself, with a request of its own: %s',
    async (name) => {
      const opened = await open(name)
      await asked(opened, name)
      opened.network.cutAll()
      await broken(opened)
      const told = approve(opened)
      await settledBy(opened, async () => expect(await told).toBe('sent'))
    },
  )

  test.each(all)('that was lost on its way takes effect by retry(): %s', async (name) => {
    const opened = await open(name)
    await asked(opened, name)
    opened.network.loseNext('up')
    const told = approve(opened)
    expect(await told).toBe('failed')
    await broken(opened)
    expect(delivery(opened)).toEqual([transports[name].live ? 'unknown' : 'waiting'])
    await settledBy(opened, opened.chat.retry)
  })

  test.each(all)(
    'whose reply was lost with all that followed took effect, as retry() shows: %s',
    async (name) => {
      const opened = await open(name)
      await asked(opened, name)
      opened.network.loseNext('down')
      expect(await approve(opened)).toBe('failed')
      await broken(opened)
      await settledBy(opened, opened.chat.retry)
    },
  )

  test.each(names(({ live }) => live).filter((name) => name.startsWith('posted')))(
    'whose reply alone was lost was sent: %s',
    async (name) => {
      const opened = await open(name)
      await asked(opened, name)
      opened.network.loseReplyBeside(0)
      await settledBy(opened, async () => expect(await approve(opened)).toBe('sent'))
    },
  )

  test.each(names(({ live, rejoin }) => live && rejoin))(
    'that is given while its run is being taken up again goes into it: %s',
    async (name) => {
      const opened = await open(name)
      await asked(opened, name)
      opened.network.cutAll()
      await broken(opened)
      const release = opened.network.holdNew()
      const retried = opened.chat.retry()
      const told = approve(opened)
      expect(delivery(opened)).toEqual(['sent'])
      release()
      await settledBy(opened, async () => expect(await told).toBe('sent'))
      await retried
      expect(opened.log.ended).toBe(1)
    },
  )

  test.each(names(({ live, rejoin }) => live && rejoin))(
    'that was lost twice, as its run was taken up again too, takes effect by another retry(): %s',
    async (name) => {
      const opened = await open(name)
      await asked(opened, name)
      for (let time = 0; time < 2; time++) {
        opened.network.loseNext('up')
        if (time === 0) {
          const told = approve(opened)
          expect(await told).toBe('failed')
        } else await opened.chat.retry()
        await broken(opened)
        expect(delivery(opened)).toEqual(['unknown'])
      }
      await settledBy(opened, opened.chat.retry)
      expect(opened.log.ended).toBe(1)
    },
  )

  test.each(names(({ rejoin }) => rejoin))(
    'that was lost is sent with a request where its run has ended meanwhile: %s',
    async (name) => {
      const opened = await open(name, { goOnFor: 0 })
      await asked(opened, name)
      opened.network.loseNext('up')
      const told = approve(opened)
      expect(await told).toBe('failed')
      await expect.poll(() => opened.log.ended).toBe(1)
      await settledBy(opened, opened.chat.retry)
    },
  )

  test.each(names(({ rejoin }) => rejoin))(
    'that was lost is sent with a request where its run is no longer known: %s',
    async (name) => {
      const opened = await open(name)
      await asked(opened, name)
      opened.network.loseNext('up')
      const told = approve(opened)
      expect(await told).toBe('failed')
      opened.log.forgets = true
      await settledBy(opened, opened.chat.retry)
    },
  )

  test.each(names(({ rejoin }) => rejoin))(
    'that arrived in a run which was stopped before it used it is sent again by retry(), by a second one at the latest, and used once: %s',
    async (name) => {
      let checked = () => {}
      const confirmed = new Promise<void>((resolve) => {
        checked = resolve
      })
      let asks = 0
      const confirm = async () => {
        asks++
        await confirmed
        return true
      }
      const opened = await open(name, { goOnFor: 0, confirm })
      await asked(opened, name)
      const { ended } = opened.log
      const told = approve(opened)
      await expect.poll(() => asks).toBe(1)
      opened.network.cutAll()
      expect(await told).toBe('failed')
      expect(delivery(opened)).toEqual(['unknown'])
      await expect.poll(opened.connected).toBe(0)
      await passMacrotasks(2)
      checked()
      await expect.poll(() => opened.log.ended).toBe(ended + 1)
      await opened.chat.retry()
      expect([
        [['waiting'], []],
        [['settled'], ['ann']],
      ]).toContainEqual([delivery(opened), opened.sent])
      await settledBy(opened, opened.chat.retry)
    },
  )

  test.each(names(({ live }) => live))(
    'that was on its way as the user stopped waits, and retry() sends it: %s',
    async (name) => {
      const opened = await open(name)
      await asked(opened, name)
      const told = approve(opened)
      opened.chat.stop()
      expect(await told).toBe('waiting')
      expect(delivery(opened)).toEqual(['unknown'])
      await settledBy(opened, opened.chat.retry)
    },
  )
})

describe('a conversation in which the network breaks once, anywhere, and the user asks again', () => {
  /** Drives it to its end. Gives how many bytes passed on each connection. */
  async function play(name: Name, cut?: { line: number; way: Way; bytes: number }) {
    // short: a run that nobody takes up again must leave room for the next
    const { chat, network, sent } = await open(name, { goOnFor: 100 })
    if (cut) network.cutAfter(cut.line, cut.way, cut.bytes)
    const answered = new Set<string>()
    const act = () => {
      const { pendingApprovals, status, isLoading, messages } = chat.getSnapshot()
      for (const { approval } of pendingApprovals) {
        if (approval === undefined || answered.has(approval.id)) continue
        answered.add(approval.id)
        void chat.addToolApprovalResponse({ id: approval.id, approved: true })
      }
      // A run that nobody reads may be over before it has checked the answer: the page then offers Retry as well.
      const isKept = messages.some(({ parts }) =>
        parts.some((part) => part.type === 'tool-call' && nextStep(part)?.next === 'retry'),
      )
      if ((status === 'error' || isKept) && !isLoading) void chat.retry()
    }
    // not while a listener is told
    chat.subscribe(() => void setImmediate(act))
    void chat.sendMessage('go')
    await until(chat, ({ status, messages }) => {
      const last = messages.at(-1)?.parts.at(-1)
      return status === 'ready' && last?.type === 'text' && last.text === 'Sent.'
    })
    const seen = states(chat).filter((state) => state !== 'send_email:cancelled')
    chat.dispose()
    network.close()
    return { outcome: [seen, sent], lines: network.lines.map(({ passed }) => ({ ...passed })) }
  }

  const once = [['send_email:complete'], ['ann']]

  test.each(names(({ live, rejoin }) => live && rejoin))(
    'ends with one approved call that ran once: %s',
    async (name) => {
      const whole = await play(name)
      expect(whole.outcome).toEqual(once)
      const step = full ? 5 : 83
      const cuts = whole.lines.flatMap((passed, line) =>
        (['up', 'down'] as const).flatMap((way) =>
          Array.from({ length: Math.ceil(passed[way] / step) }, (_, n) => ({
            line,
            way,
            bytes: 1 + n * step,
          })),
        ),
      )
      while (cuts.length > 0) {
        await Promise.all(
          cuts.splice(0, 16).map(async (cut) => {
            const { outcome } = await play(name, cut)
            expect({ ...cut, outcome }).toEqual({ ...cut, outcome: once })
          }),
        )
      }
    },
  )
})
