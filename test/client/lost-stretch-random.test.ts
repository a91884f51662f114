import { ChatClient, type ToolCallPart } from '@countersign/client'
import { reconnecting } from '@countersign/client/reconnect'
import { checkResponse } from '@countersign/client/response-schema'
import { type ClientFrame, type WebSocketLike, webSocket } from '@countersign/client/web-socket'
import type { AGUIEvent, Interrupt, ResumeEntry } from '@countersign/core'
import { isRecord } from '@countersign/core'
import { passMacrotasks } from '@countersign/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { full } from '../full.js'
import { memoryPersistence } from './fake-browser.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// A server over a WebSocket that is not ours: what it sends while nobody listens may be lost, and what it asks about then is unknown here.

const seed = 20_261_126

const plans = fc.record({
  /** Whether its runs wait for the answers, or end with the requests. */
  isLive: fc.boolean(),
  /** What it sends to a page that rejoins: what that lacks; what comes from now on; everything; nothing. */
  rejoin: fc.constantFrom('rest', 'later', 'later', 'all', 'nothing'),
  /** What a request carries of its call. */
  carries: fc.constantFrom('nothing', 'arguments', 'all'),
  by: fc.constantFrom('event', 'interrupt', 'both'),
  calls: fc.integer({ min: 1, max: 3 }),
  /** Whether a later run sends the calls of the open requests again. */
  retells: fc.boolean(),
  /** Whether another round follows, with the ids of the first. */
  repeats: fc.constantFrom('no', 'calls', 'both'),
  cutAt: fc.integer({ min: 0, max: 16 }),
  gap: fc.integer({ min: 0, max: 12 }),
  /** Whether the page is reloaded at the cut. */
  reloads: fc.boolean(),
  says: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
})
type Plan = typeof plans extends fc.Arbitrary<infer Value> ? Value : never

interface Asked {
  readonly id: string
  readonly toolCallId: string
  readonly input: { readonly n: number }
  answer?: unknown
}

interface Run {
  readonly runId: string
  readonly log: AGUIEvent[]
  /** What comes next: events, and requests whose answers it waits for. */
  readonly script: (AGUIEvent | Asked)[]
  isOver: boolean
}

const isAsked = (item: AGUIEvent | Asked): item is Asked => 'answer' in item || !('type' in item)

class OddServer {
  readonly requests: Asked[] = []
  /** Every answer that arrived, by request. */
  readonly answers = new Map<string, ResumeEntry[]>()
  readonly read: AGUIEvent[] = []
  run: Run | undefined
  socket: FakeSocket | undefined
  ticks = 0
  round = 0
  readonly plan: Plan

  constructor(plan: Plan) {
    this.plan = plan
  }

  receive(socket: FakeSocket, frame: ClientFrame): void {
    switch (frame.type) {
      case 'run': {
        const { runId, resume = [] } = frame.input
        const done = resume.flatMap((entry) => this.take(entry))
        this.run = { runId, log: [], script: [], isOver: false }
        this.socket = socket
        this.write(this.run, done)
        return
      }
      case 'rejoin': {
        const run = this.run?.runId === frame.runId ? this.run : undefined
        const { rejoin } = this.plan
        if (!run || rejoin === 'nothing') {
          socket.deliver({ type: 'end', runId: frame.runId })
          return
        }
        this.socket = socket
        const from = rejoin === 'all' ? 0 : Number(frame.lastEventId ?? -1) + 1
        for (const [at, event] of run.log.entries())
          if (rejoin !== 'later' && at >= from) this.deliver(run, event, at)
        if (run.isOver) socket.deliver({ type: 'end', runId: run.runId })
        return
      }
      case 'answer':
        for (const entry of frame.resume) this.take(entry)
        socket.deliver({ type: 'answered', id: frame.id })
        return
      default:
    }
  }

  take(entry: ResumeEntry): Asked[] {
    const id = entry.interruptId
    this.answers.set(id, [...(this.answers.get(id) ?? []), entry])
    const asked = this.requests.findLast((one) => one.id === id)
    if (!asked || asked.answer !== undefined) return []
    asked.answer = entry
    return [asked]
  }

  get open(): Asked[] {
    return this.requests.filter(({ answer }) => answer === undefined)
  }

  /** The script of a run. */
  write(run: Run, done: readonly Asked[]): void {
    const { isLive, by, retells, repeats } = this.plan
    const { script, runId } = run
    const open = this.open
    script.push({ type: 'RUN_STARTED', threadId: 't', runId, protocolVersion: '1.0' })
    for (const asked of done) script.push(resultOf(asked))
    const isNew = open.length === 0 && this.round < (repeats === 'no' ? 1 : 2)
    const asked = isNew ? this.ask() : open
    if (isNew || retells) for (const one of asked) script.push(...callOf(one, runId))
    if (by !== 'interrupt' || isLive) for (const one of asked) script.push(this.eventOf(one))
    if (isLive) for (const one of asked) script.push(one)
  }

  ask(): Asked[] {
    const { calls, repeats } = this.plan
    const round = this.round++
    const made = Array.from({ length: calls }, (_, at) => ({
      id: `int-${repeats === 'both' ? at : `${round}-${at}`}`,
      toolCallId: `c-${repeats === 'no' ? `${round}-` : ''}${at}`,
      input: { n: round * 10 + at },
    }))
    this.requests.push(...made)
    return made
  }

  carried({ toolCallId, input }: Asked): Record<string, unknown> {
    const { carries } = this.plan
    return {
      toolCallId,
      ...(carries !== 'nothing' && { input }),
      ...(carries === 'all' && { toolName: 'act' }),
    }
  }

  eventOf(asked: Asked): AGUIEvent {
    const approval = { id: asked.id, options: ['deny', 'once'] }
    return { type: 'CUSTOM', name: 'approval-requested', value: { ...this.carried(asked), approval } }
  }

  interruptOf(asked: Asked): Interrupt {
    const { id, toolCallId } = asked
    const metadata = { countersign: this.carried(asked) }
    return { id, reason: 'tool_call', toolCallId, message: `Call ${id}?`, metadata }
  }

  /** Sends the next event; returns whether there is more to come without an answer. */
  tick(): boolean {
    const { run } = this
    if (!run || run.isOver) return false
    const next = run.script[0]
    if (next && isAsked(next)) {
      if (next.answer === undefined) return false
      run.script[0] = resultOf(next)
      return true
    }
    run.script.shift()
    const event = next ?? this.finish(run)
    this.ticks++
    run.log.push(event)
    this.deliver(run, event, run.log.length - 1)
    if (next) return true
    run.isOver = true
    this.socket?.deliver({ type: 'end', runId: run.runId })
    return false
  }

  finish({ runId }: Run): AGUIEvent {
    const interrupts = this.open.map((asked) => this.interruptOf(asked))
    const outcome =
      interrupts.length > 0 ? ({ type: 'interrupt', interrupts } as const) : ({ type: 'success' } as const)
    return { type: 'RUN_FINISHED', threadId: 't', runId, outcome }
  }

  deliver({ runId }: Run, event: AGUIEvent, at: number): void {
    if (this.socket?.deliver({ type: 'events', runId, events: [event], id: `${at}` })) this.read.push(event)
  }
}

function callOf({ toolCallId: id, input }: Asked, runId: string): AGUIEvent[] {
  return [
    { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'act', parentMessageId: `m-${runId}` },
    { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify(input) },
    { type: 'TOOL_CALL_END', toolCallId: id },
  ]
}

function resultOf({ toolCallId, id }: Asked): AGUIEvent {
  return {
    type: 'TOOL_CALL_RESULT',
    messageId: `r-${id}-${toolCallId}`,
    toolCallId,
    role: 'tool',
    content: '1',
  }
}

class FakeSocket implements WebSocketLike {
  readyState = 0
  readonly #listeners: { type: string; tell: (event: never) => void }[] = []
  readonly #server: OddServer

  constructor(server: OddServer) {
    this.#server = server
    queueMicrotask(() => {
      if (this.readyState !== 0) return
      this.readyState = 1
      this.#tell('open', {})
    })
  }

  addEventListener(type: string, tell: (event: never) => void): void {
    this.#listeners.push({ type, tell })
  }

  send(text: string): void {
    if (this.readyState === 1) queueMicrotask(() => this.#server.receive(this, JSON.parse(text)))
  }

  deliver(frame: object): boolean {
    if (this.readyState !== 1) return false
    this.#tell('message', { data: JSON.stringify(frame) })
    return true
  }

  close(): void {
    if (this.readyState === 3) return
    this.readyState = 3
    this.#tell('close', { code: 1006, reason: '' })
  }

  #tell(type: string, event: object): void {
    for (const one of this.#listeners) if (one.type === type) one.tell(event as never)
  }
}

function openPage(server: OddServer, kept: ReturnType<typeof memoryPersistence>) {
  const sockets: FakeSocket[] = []
  const page = { isGone: false }
  const never = new Promise<never>(() => {})
  // A page that was closed opens no socket any more.
  const Socket = class extends FakeSocket {
    constructor() {
      super(server)
      sockets.push(this)
      if (page.isGone) this.close()
    }
  }
  const { save } = kept
  const base = webSocket('ws://odd.test/', { WebSocket: Socket, rejoin: true })
  const errors: string[] = []
  const warnings: string[] = []
  const client = new ChatClient({
    connection: reconnecting(base, { delay: 1, attempts: 2 }),
    threadId: 't',
    checkResponse,
    persistence: { ...kept, open: (session, host) => kept.open(session, host) },
    notify: 'sync',
    onError: ({ code }) => errors.push(code),
    onWarning: (warning) => warnings.push(warning),
  })
  const detach = client.attach()
  const leave = () => {
    page.isGone = true
    kept.save = () => never
    for (const socket of sockets) socket.close()
    detach()
    client.dispose()
    kept.save = save
  }
  return { client, sockets, errors, warnings, leave }
}

/** Lets the server say what it has to, and the page settle. */
async function settle(server: OddServer, { client }: Pick<ReturnType<typeof openPage>, 'client'>) {
  for (let quiet = 0; quiet < 4; ) {
    quiet = server.tick() ? 0 : quiet + 1
    await passMacrotasks(1)
    for (let n = 0; n < 10 && client.getSnapshot().status === 'reconnecting'; n++)
      await new Promise((r) => setTimeout(r, 1))
  }
}

interface Tally {
  shown: number
  asInterrupt: number
  coded: number
  answered: number
  denied: number
  unused: number
}

async function play(plan: Plan, tally: Tally): Promise<void> {
  const server = new OddServer(plan)
  const kept = memoryPersistence()
  let page = openPage(server, kept)
  await passMacrotasks(1)
  void page.client.sendMessage('go')
  await passMacrotasks(1)
  while (server.ticks < plan.cutAt && server.tick()) await passMacrotasks(1)
  await passMacrotasks(2)
  if (plan.reloads) page.leave()
  else server.socket?.close()
  for (let n = 0; n < plan.gap; n++) server.tick()
  if (plan.reloads) page = openPage(server, kept)
  await passMacrotasks(2)
  const all: Given[] = []
  let retries = 0
  for (let n = 0; n < 40; n++) {
    await settle(server, page)
    // What a person does: retries what failed, and answers what is shown.
    const { error, pendingApprovals, interrupts, status } = page.client.getSnapshot()
    check(server, page, tally, all)
    const say = plan.says[n % plan.says.length] ?? true
    const [asked] = pendingApprovals.filter(({ approval }) => !approval.problem)
    const other = asked ? undefined : interrupts[0]
    if (other)
      expect(
        await page.client.respondToInterrupt({ id: other.id, payload: { approved: true } }),
      ).toMatchObject({
        status: 'refused',
        code: 'approval-malformed',
      })
    const id = asked?.approval.id ?? other?.id ?? ''
    const before = server.answers.get(id)?.length ?? 0
    const result = asked
      ? page.client.addToolApprovalResponse({ id: asked.approval.id, approved: say })
      : other && page.client.respondToInterrupt({ id: other.id, payload: { approved: false } })
    if (!result) {
      if (n > 5 || (error === undefined && server.open.length === 0)) break
      if (error) {
        retries++
        await Promise.race([page.client.retry(), settle(server, page)])
      } else if (status === 'ready' || status === 'awaiting-approval')
        await Promise.race([page.client.sendMessage('and?'), settle(server, page)])
      continue
    }
    const given: Given = { id, asked, say, before, found: undefined }
    all.push(given)
    void result.then(({ status }) => {
      given.found = status
    })
    await settle(server, page)
  }
  for (const { id, asked, say, before, found } of all) {
    // A run that waits for an answer to what the page never got goes on until the connection gives it up.
    if (!server.run?.isOver && found === undefined) continue
    expect(found, 'every answer has a result').toBeDefined()
    if (found !== 'sent') {
      tally.unused++
      continue
    }
    const entries = server.answers.get(id) ?? []
    const toIt = all.filter((one) => one.id === id)
    // A retry repeats what may not have arrived.
    expect(entries.length, 'each answer went out once').toBeLessThanOrEqual(toIt.length + retries)
    const used = server.requests.filter(({ answer }) => answer === entries[before])
    // A server that drops a piece of the arguments, and does not repeat them, has no client that could tell.
    const isBlind = plan.rejoin === 'later' && plan.carries === 'nothing'
    if (asked && say && !isBlind) expect(used.map(({ input }) => input)).toEqual([asked.input])
    if (asked) tally.answered++
    else tally.denied++
  }
}

interface Given {
  readonly id: string
  readonly asked: ToolCallPart | undefined
  readonly say: boolean
  readonly before: number
  found: string | undefined
}

/** Every request that the server waits for, and that reached the page, is shown there; or the page says what is wrong. */
function check(
  server: OddServer,
  { client, warnings }: ReturnType<typeof openPage>,
  tally: Tally,
  all: readonly Given[],
): void {
  const { error, pendingApprovals, interrupts, messages } = client.getSnapshot()
  const calls = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'tool-call' ? part : [])),
  )
  for (const { id, toolCallId } of server.open) {
    if (!server.read.some((event) => asks(event, id))) continue
    if (pendingApprovals.some(({ approval }) => approval.id === id && !approval.problem)) tally.shown++
    else if (interrupts.some((interrupt) => interrupt.id === id)) tally.asInterrupt++
    else {
      // Its answer waits for those to the others.
      const given = all.some((one) => one.id === id && one.found !== 'sent')
      const isCoded = error || calls.some((call) => call.id === toolCallId && call.approval?.problem)
      if (!isCoded && !given) {
        console.log(JSON.stringify({ warnings, pendingApprovals, interrupts, calls }, null, 1))
        throw new Error(`The request ${id} is not shown`)
      }
      tally.coded++
    }
  }
}

function asks(event: AGUIEvent, id: string): boolean {
  if (event.type === 'RUN_FINISHED' && event.outcome?.type === 'interrupt')
    return event.outcome.interrupts.some((interrupt) => interrupt.id === id)
  return event.type === 'CUSTOM' && isRecord(event.value) && JSON.stringify(event.value).includes(`"${id}"`)
}

test(`whatever stretch of a stream is lost, a request that arrives is shown, or an error says what is wrong (seed ${seed})`, async () => {
  const tally: Tally = { shown: 0, asInterrupt: 0, coded: 0, answered: 0, denied: 0, unused: 0 }
  await fc.assert(
    fc.asyncProperty(plans, (plan) => play(plan, tally)),
    { seed, numRuns: full ? 1500 : 120 },
  )
  console.log(`seed ${seed}:`, JSON.stringify(tally))
  expect(Math.min(tally.shown, tally.asInterrupt, tally.answered, tally.denied)).toBeGreaterThan(5)
})
