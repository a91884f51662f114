import type { ChatClient } from '@countersign/client'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { expect, test, vi } from 'vitest'
import { full } from '../full.js'
import { randomFrom } from '../random.js'
import { openPage, type Reply, startServer, stop, words } from './threads-server.js'

const first = Number(process.env.SEED ?? 20261124)
const rounds = Number(process.env.ROUNDS ?? (full ? 300 : 25))

const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Two browsers on one conversation; pages reload, networks break, both write and answer. */
async function play(seed: number) {
  const random = randomFrom(seed)
  const below = (n: number) => Math.floor(random() * n)
  let calls = 0
  const reply: Reply = async function* () {
    for (let n = below(6); n >= 0; n--) {
      yield words(`word${n} `)
      await pass(below(4))
    }
    if (random() < 0.5) {
      const to = `to${++calls}`
      yield { type: 'tool-call', id: `call-${to}`, name: 'send', arguments: JSON.stringify({ to }) }
      yield { type: 'finish', reason: 'tool_calls' }
    } else yield stop
  }
  const server = startServer(...Array<Reply>(60).fill(reply))
  const answered = new Map<string, boolean>()
  const said = new Set<string>()
  /** Messages that no page has shown yet, and where they were written: they wait for the conversation to load. */
  const waiting = new Map<string, number>()
  const pages = [openPage(server, { busyFor: 5000 }), openPage(server, { busyFor: 5000 })]
  const reload = (at: number) => {
    const before = pages[at]
    before?.leave()
    for (const [text, where] of waiting) {
      if (where !== at) continue
      waiting.delete(text)
      // What was never shown is lost with its page.
      if (!isShown(before?.client, text)) said.delete(text)
    }
    pages[at] = openPage(server, { busyFor: 5000, ...(before && { local: before.local }) })
  }
  const answer = (at: number, approved: boolean) => {
    const [card] = pages[at]?.client.getSnapshot().pendingApprovals ?? []
    if (!card) return
    const { to } = card.input as { to: string }
    if (answered.has(to)) return
    answered.set(to, approved)
    void pages[at]?.client.addToolApprovalResponse({ id: card.approval.id, approved })
  }
  for (let step = 0; step < 14; step++) {
    const at = below(2)
    const page = pages[at]
    switch (below(7)) {
      case 0:
      case 1:
        if (said.size < 6 && (page?.client.getSnapshot().pendingApprovals.length ?? 0) === 0) {
          const text = `message ${step}`
          said.add(text)
          waiting.set(text, at)
          void page?.client.sendMessage(text)
        }
        break
      case 2:
        reload(at)
        break
      case 3:
        if (page) page.network.isUp = !page.network.isUp
        break
      default:
        answer(at, random() < 0.7)
    }
    await pass(below(12))
    for (const [text, where] of waiting) if (isShown(pages[where]?.client, text)) waiting.delete(text)
  }
  for (const { network } of pages) network.isUp = true
  // Nothing breaks any more: whatever is asked is answered, whatever failed is tried again.
  const isCalm = async () => {
    const thread = await server.agent.threads?.load({ owner: 'ada', threadId: 't' })
    if (!thread) return said.size === 0
    const ids = JSON.stringify(branchOf(thread))
    const [one, other] = pages.map(({ client }) => JSON.stringify(contentOf(client.getSnapshot())))
    return (
      thread.run === undefined &&
      one === other &&
      pages.every(({ client }) => {
        const { status, queue, messages } = client.getSnapshot()
        return (
          status === 'ready' && queue.length === 0 && JSON.stringify(messages.map(({ id }) => id)) === ids
        )
      })
    )
  }
  // Decided once: what a page that is gone has sent may take the conversation later.
  let calm = await isCalm()
  for (let turn = 0; turn < 400 && !calm; turn++) {
    for (const [at, { client }] of pages.entries()) {
      const { isLoading, status } = client.getSnapshot()
      answer(at, true)
      if (!isLoading && (status === 'error' || hasUnsent(client))) void client.retry()
    }
    await pass(10)
    calm = await isCalm()
  }
  return { server, pages, said, answered, isCalm: calm }
}

type Stored = NonNullable<
  Awaited<ReturnType<NonNullable<ReturnType<typeof startServer>['agent']['threads']>['load']>>
>

/** The ids of the messages that a page shows of a stored conversation. */
function branchOf({ head, messages }: Stored): string[] {
  const byId = new Map(messages.map((message) => [message.id, message]))
  const branch = []
  for (let one = head === null ? undefined : byId.get(head); one; one = byId.get(one.parent ?? ''))
    branch.unshift(one)
  return fromAGUIMessages(branch.map(({ message }) => JSON.parse(message))).map(({ id }) => id)
}

async function stored({ agent }: ReturnType<typeof startServer>) {
  const thread = await agent.threads?.load({ owner: 'ada', threadId: 't' })
  return [thread?.version, thread?.run, thread && branchOf(thread)]
}

/**
 * What both pages must show alike. Only the page that gave an answer knows how far it got. A call's state says what became of it, also where
 * the page closed it before the server's result arrived.
 */
function contentOf(snapshot: ReturnType<ReturnType<typeof openPage>['client']['getSnapshot']> | undefined) {
  return snapshot?.messages.map(({ id, parts }) => [
    id,
    ...parts.flatMap((part) => {
      if (part.type === 'text') return part.text
      return part.type === 'tool-call' ? `${part.id}: ${part.state}` : []
    }),
  ])
}

function isShown(client: ChatClient | undefined, text: string): boolean {
  return JSON.stringify(client?.getSnapshot() ?? '').includes(text)
}

function hasUnsent({ getSnapshot }: ReturnType<typeof openPage>['client']): boolean {
  return getSnapshot().messages.some(({ parts }) =>
    parts.some((part) => part.type === 'tool-call' && part.state === 'approval-responded'),
  )
}

test(`T12, T13, T14 two browsers, reloads and broken networks: every message is stored once, every approved call runs once, both pages show the same (seed ${first})`, async () => {
  vi.setConfig({ testTimeout: 600_000 })
  let messages = 0
  let ran = 0
  for (let seed = first; seed < first + rounds; seed++) {
    const { server, pages, said, answered, isCalm } = await play(seed)
    const shown = pages.map(({ client }) => client.getSnapshot())
    expect(
      [seed, isCalm],
      JSON.stringify([
        ...shown.map((one) => [one.status, one.error?.code, one.queue.length, contentOf(one)]),
        await stored(server),
      ]),
    ).toEqual([seed, true])
    const texts = shown[0]?.messages.flatMap(({ role, parts }) => (role === 'user' ? parts : [])) ?? []
    expect([seed, texts.map((part) => (part.type === 'text' ? part.text : '')).sort()]).toEqual([
      seed,
      [...said].sort(),
    ])
    expect([seed, contentOf(shown[0])]).toEqual([seed, contentOf(shown[1])])
    expect([seed, new Set(server.executed).size]).toEqual([seed, server.executed.length])
    for (const to of server.executed) expect([seed, to, answered.get(to)]).toEqual([seed, to, true])
    for (const { parts } of shown[0]?.messages ?? [])
      for (const part of parts)
        if (part.type === 'tool-call' && part.state === 'complete')
          expect(server.executed).toContain((part.input as { to: string }).to)
    messages += said.size
    ran += server.executed.length
    for (const page of pages) page.leave()
  }
  console.log(`seed ${first}: ${rounds} rounds, ${messages} messages, ${ran} calls run`)
  expect(ran).toBeGreaterThan(rounds / 2)
}, 600_000)
