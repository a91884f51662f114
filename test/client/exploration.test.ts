import { ChatClient, clientTool, type ToolCallPart, type ToolCallState } from '@countersign/client'
import {
  action,
  call,
  createTimeline,
  cut,
  end,
  error,
  explained,
  gated,
  macrotasks,
  microtasks,
  passMacrotasks,
  passMicrotasks,
  resolve,
  type Script,
  type Step,
  type Steps,
  scriptedConnection,
  type Timeline,
  text,
  textDelta,
  textEnd,
  textStart,
  watch,
} from '@countersign/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { loadWithoutSkippedFlag } from '../timelines/without-skipped-flag.js'
import { failOnUnhandledRejections, parts } from './open-chat.js'

failOnUnhandledRejections()

/*
 * Random timelines: a server that does whatever a server may do, and a person who acts at whatever moment. A tape of numbers makes every
 * choice, so that a failing timeline shrinks; 0 is always the quietest choice, and what the tape does not say is 0.
 */

interface Tape {
  /** A number below `choices`. */
  pick(choices: number): number
  chance(percent: number): boolean
}

function createTape(numbers: readonly number[]): Tape {
  let at = 0
  const pick = (choices: number) => (numbers[at++] ?? 0) % choices
  return { pick, chance: (percent) => pick(100) >= 100 - percent }
}

interface World {
  readonly client: ChatClient
  readonly server: Script
  readonly timeline: Timeline
  readonly tape: Tape
  readonly person: ChatClient['actions']
  /** Decisions that were accepted, by approval id. */
  readonly accepted: Map<string, boolean>
  /** Texts that were taken, in order. */
  readonly said: string[]
  /** Ids of runs that a person asked for: to repeat what failed, or by speaking. */
  readonly retried: Set<string>
  readonly spoken: Set<string>
  /** Ids of runs that the client saw begin. */
  readonly begun: Set<string>
  readonly toolRuns: Map<string, number>
  /** What was there when the person stopped the chat; nothing may change it before they act again. */
  stopped: { snapshot: unknown; requests: number } | undefined
  /** A retry is being asked for, which takes back what the failed run left unfinished. */
  retrying: boolean
  calls: number
  messages: number
  /** No more faults, questions and odd acts: time to come to an end. */
  calm: boolean
}

function createWorld(numbers: readonly number[], Client: typeof ChatClient): World {
  const tape = createTape(numbers)
  const timeline = createTimeline()
  const server = scriptedConnection([], { timeline, otherwise: () => serve(world), deaf: tape.chance(30) })
  const toolRuns = new Map<string, number>()
  const locate = clientTool({
    name: 'locate',
    description: 'Where the person is',
    input: z.object({}),
    async execute(_, { toolCallId }) {
      toolRuns.set(toolCallId, (toolRuns.get(toolCallId) ?? 0) + 1)
      expect(world.stopped, 'a client tool started after stop').toBeUndefined()
      await (tape.chance(50) ? passMacrotasks(tape.pick(3)) : passMicrotasks(tape.pick(8)))
      if (tape.chance(20)) throw new Error('No signal.')
      return 'Lisbon'
    },
  })
  const client = new Client({
    connection: server,
    tools: [locate],
    onPendingMessage: (['cancel', 'queue', 'reject'] as const)[tape.pick(3)],
    notify: 'sync',
    onWarning: () => {},
    onApprovalRequest: () => {
      if (!world.calm && tape.chance(15)) actAtRandom(world)
    },
    onFinish: () => {
      if (!world.calm && tape.chance(10)) actAtRandom(world)
    },
  })
  watch(client, timeline)
  const world: World = {
    client,
    server,
    timeline,
    tape,
    person: client.actions,
    accepted: new Map(),
    said: [],
    retried: new Set(),
    spoken: new Set(),
    begun: new Set(),
    toolRuns,
    stopped: undefined,
    retrying: false,
    calls: 0,
    messages: 0,
    calm: false,
  }
  return world
}

/** One run of the server: the results of what was answered, then a little of everything, then some end. */
function* serve(world: World): Generator<Step, void, undefined> {
  const { tape } = world
  if (!world.calm && tape.chance(6)) return yield cut('before anything')
  yield* flat(pause(world))
  yield resolve()
  const length = world.calm ? 0 : tape.pick(4)
  for (let i = 0; i < length; i++) {
    yield* flat(pause(world))
    yield* flat(content(world))
    if (tape.chance(15)) yield action('at random', () => !world.calm && actAtRandom(world))
    if (tape.chance(5)) return yield [cut('in the middle'), error(), end()][tape.pick(3)] ?? cut()
  }
  yield text('ok.')
  yield* flat(pause(world))
  if (tape.chance(10)) {
    yield { step: 'finish', options: {} }
    yield* flat(pause(world))
    if (tape.chance(30)) yield cut('after the end')
  }
}

function content(world: World): Steps {
  const { tape } = world
  const id = ++world.calls
  switch (id > 8 ? 0 : tape.pick(6)) {
    case 0:
      return [text('some ', 'words. ')]
    case 1:
      return [gated(id)]
    case 2:
      return [gated(id), pause(world), gated(++world.calls)]
    case 3:
      return [call(`c${id}`, 'locate')]
    case 4:
      return [call(`c${id}`, 'list'), pause(world), { step: 'result', callId: `c${id}`, output: [] }]
    default:
      return [textStart(), textDelta('half '), pause(world), textDelta('and half. '), textEnd()]
  }
}

function pause({ tape }: World): Steps {
  if (tape.chance(40)) return [microtasks(1 + tape.pick(6))]
  return tape.chance(40) ? [macrotasks(1 + tape.pick(2))] : []
}

function* flat(steps: Steps): Generator<Step, void, undefined> {
  for (const step of steps) {
    if ('step' in step) yield step
    else yield* flat(step)
  }
}

function actAtRandom(world: World): void {
  const { tape, client } = world
  const pending = client.getSnapshot().pendingApprovals
  switch (tape.pick(9)) {
    case 0:
    case 1:
    case 2: {
      const id = pending[tape.pick(Math.max(pending.length, 1))]?.approval?.id
      if (id !== undefined) answer(world, id, tape.chance(60))
      return
    }
    case 3: {
      const known = [...world.accepted.keys()]
      const id = known[tape.pick(Math.max(known.length, 1))]
      if (id !== undefined) answer(world, id, tape.chance(50))
      return
    }
    case 4:
      say(world)
      return
    case 5:
      stop(world)
      return
    case 6:
      retry(world)
      return
    case 7:
      takeBack(world)
      return
    default:
      for (const { approval } of pending) if (approval) answer(world, approval.id, true)
  }
}

/** Takes the first queued message back, which is no reason to go on after a stop. */
function takeBack(world: World): void {
  const { client, person, said, stopped, server } = world
  const [queued] = client.getSnapshot().queue
  if (!queued) return
  begin(world)
  expect(person.cancelQueued(queued.id)).toBe(true)
  said.splice(said.indexOf(textOf(queued.message)), 1)
  if (stopped) world.stopped = { snapshot: client.getSnapshot(), requests: server.requests.length }
}

const textOf = (message: { parts: readonly unknown[] }) => JSON.stringify(message.parts)

/** Invariant 7: until now nothing has happened since the stop. */
function begin(world: World): void {
  if (world.stopped) {
    expect(world.client.getSnapshot(), 'the chat changed after stop').toBe(world.stopped.snapshot)
    expect(world.server.requests.length, 'a request after stop').toBe(world.stopped.requests)
  }
  world.stopped = undefined
}

function answer(world: World, id: string, approved: boolean): void {
  const { client, accepted } = world
  const open = client.getSnapshot().pendingApprovals.some(({ approval }) => approval?.id === id)
  if (open) begin(world)
  if (open) accepted.set(id, approved)
  const given = world.person.addToolApprovalResponse({ id, approved })
  void given.then(({ status }) => {
    if (open) expect(['sent', 'waiting', 'failed', 'closed']).toContain(status)
    else expect(['already-answered', 'closed', 'not-found']).toContain(status)
  })
}

function say(world: World): void {
  const { client, person, said } = world
  const before = client.getSnapshot()
  const words = `message ${++world.messages}`
  const refused = client.getSnapshot().pendingApprovals.length > 0
  begin(world)
  const openBefore = client.inspect().openRun
  const sent = person.sendMessage(words)
  const taken = client.getSnapshot() !== before
  if (taken) said.push(JSON.stringify([{ type: 'text', text: words }]))
  else expect(refused, 'a message was refused with nothing pending').toBe(true)
  noteRun(world, world.spoken, openBefore)
  void sent.then(({ status }) => expect(status === 'refused').toBe(!taken))
}

function retry(world: World): void {
  if (!world.client.getSnapshot().isLoading) begin(world)
  const before = world.client.inspect().openRun
  world.retrying = true
  void world.person.retry()
  world.retrying = false
  noteRun(world, world.retried, before)
}

/** The run that an act has opened is the person's own. */
function noteRun({ client }: World, runs: Set<string>, before: string | undefined): void {
  const { openRun } = client.inspect()
  if (openRun !== undefined && openRun !== before) runs.add(openRun)
}

function stop(world: World): void {
  const { client, server } = world
  const running = client.getSnapshot().isLoading
  world.person.stop()
  const snapshot = client.getSnapshot()
  expect(snapshot.isLoading).toBe(false)
  const calm = snapshot.pendingApprovals.length > 0 ? 'awaiting-approval' : 'ready'
  if (running) expect(snapshot.status).toBe(calm)
  else expect(['error', calm]).toContain(snapshot.status)
  world.stopped = { snapshot, requests: server.requests.length }
}

const rank: Readonly<Record<ToolCallState, number>> = {
  'awaiting-input': 0,
  'input-streaming': 1,
  'input-complete': 2,
  'approval-requested': 3,
  'approval-responded': 4,
  executing: 5,
  complete: 6,
  error: 6,
  denied: 6,
  cancelled: 6,
}

/** Checked at every change: invariants 1, 6 and 14. */
function watchChanges(world: World, failures: unknown[]): void {
  const { client, server, accepted, begun } = world
  let calls = new Map<string, ToolCallPart>()
  let texts: readonly string[] = []
  // What throws inside a listener is the client's to report; here it has to fail the timeline.
  const check = () => {
    expect(server.openStreams, 'two streams at once').toBeLessThanOrEqual(1)
    const { openRun } = client.inspect()
    if (openRun !== undefined && client.getSnapshot().status === 'streaming') begun.add(openRun)
    const now = new Map(
      parts(client).flatMap((part) => (part.type === 'tool-call' ? [[part.id, part] as const] : [])),
    )
    for (const [id, before] of calls) {
      const after = now.get(id)
      expect(after, `the call ${id} is gone`).toBeDefined()
      if (!after || after === before) continue
      if (after.state !== before.state)
        expect(rank[after.state], `${id}: ${before.state} -> ${after.state}`).toBeGreaterThan(
          rank[before.state],
        )
      if (before.approval?.approved !== undefined)
        expect(after.approval?.approved, 'an answer changed').toBe(before.approval.approved)
    }
    for (const { approval } of now.values()) {
      if (approval) expect(approval.approved, 'an answer that nobody gave').toBe(accepted.get(approval.id))
    }
    const grown = parts(client).flatMap((part) => (part.type === 'text' ? [part.text] : []))
    // A retry takes back what the failed run left unfinished.
    if (!world.retrying)
      expect(
        texts.every((before, index) => grown[index]?.startsWith(before)),
        'a text did not only grow',
      ).toBe(true)
    calls = now
    texts = grown
  }
  client.subscribe(() => {
    try {
      check()
    } catch (cause) {
      failures.push(cause)
    }
  })
}

/** What the chat looked like when each request arrived. */
function watchRequests({ server, client }: World): readonly (readonly ToolCallPart[])[] {
  const pending: (readonly ToolCallPart[])[] = []
  client.subscribe(() => {
    while (pending.length < server.requests.length) pending.push(client.getSnapshot().pendingApprovals)
  })
  return pending
}

/** Invariants 3 and 4, for every request that no person asked for. */
function checkRequests(
  { server, retried, spoken }: World,
  pending: readonly (readonly ToolCallPart[])[],
): void {
  server.requests.forEach((request, index) => {
    if (retried.has(request.runId) || spoken.has(request.runId)) return
    const before = server.requests[index - 1]
    const news = newsOf(request) > newsOf(before) || (request.resume?.length ?? 0) > 0
    expect(news, `request ${index + 1} brings nothing new`).toBe(true)
    if (usersOf(request).length > usersOf(before).length) return
    expect(pending[index], `request ${index + 1} goes on with an unanswered request`).toEqual([])
  })
}

type Request = Script['requests'][number]

const usersOf = (request: Request | undefined) =>
  request?.messages.filter(({ role }) => role === 'user') ?? []
const newsOf = (request: Request | undefined) =>
  request?.messages.filter(({ role }) => role === 'user' || role === 'tool').length ?? 0

/** Answers everything, repeats what failed and speaks once more, until nothing is left to do. */
async function comeToAnEnd(world: World): Promise<void> {
  world.calm = true
  const { client } = world
  for (let round = 0; round < 60; round++) {
    await passMacrotasks(6)
    const { isLoading, error: fault, pendingApprovals, queue } = client.getSnapshot()
    if (isLoading) continue
    checkNothingHeldBack(world)
    const [pending] = pendingApprovals
    if (fault) retry(world)
    else if (pending?.approval) answer(world, pending.approval.id, true)
    else if (queue.length > 0 || round < 2) say(world)
    else if (![...parts(client)].some((part) => part.type === 'tool-call' && part.state === 'executing'))
      return
  }
  throw new Error('The chat does not come to an end.')
}

/** Invariant 2, the other side: nothing runs, nobody is asked, nothing failed, nobody stopped it, and yet an answer is not sent. */
function checkNothingHeldBack({ client, stopped }: World): void {
  const { error: fault, pendingApprovals } = client.getSnapshot()
  const calls = parts(client).filter((part) => part.type === 'tool-call')
  const busy = calls.some(({ state }) => state === 'executing')
  if (fault || stopped || busy || pendingApprovals.length > 0) return
  const forgotten = calls.filter(
    ({ approval, state }) => state === 'approval-responded' && approval?.delivery === 'waiting',
  )
  expect(forgotten, 'an answer was forgotten').toEqual([])
}

/** Checked at the end: invariants 2, 5, 8 and 9, and that a client tool ran once at most. */
function checkOutcome(world: World): void {
  const { client, server, accepted, said, toolRuns, retried, begun, timeline } = world
  const { status, queue } = client.getSnapshot()
  expect(status).toBe('ready')
  expect(queue).toEqual([])
  const heard = client
    .getSnapshot()
    .messages.filter(({ role }) => role === 'user')
    .map(textOf)
  expect(heard, 'messages are lost, doubled or out of order').toEqual(said)
  const last = usersOf(server.requests.at(-1)).map(({ content: words }) =>
    JSON.stringify([{ type: 'text', text: words }]),
  )
  expect(last).toEqual(said)
  for (const count of toolRuns.values()) expect(count, 'a client tool ran twice').toBe(1)
  const closed = new Map(
    timeline.entries.flatMap((entry) => (entry.kind === 'closed' ? [[entry.run, entry.how] as const] : [])),
  )
  for (const [id, approved] of accepted) {
    const sent = server.requests.flatMap(({ resume = [], runId }, index) =>
      resume
        .filter(({ interruptId }) => interruptId === id)
        .map((entry) => ({ entry, runId, run: index + 1, again: retried.has(runId) })),
    )
    expect(sent.length, `the answer to ${id} was never sent`).toBeGreaterThan(0)
    for (const { entry } of sent) expect(entry, 'an answer changed after it was sent').toEqual(sent[0]?.entry)
    expect(sent[0]?.entry.payload).toEqual({ approved })
    sent.slice(1).forEach(({ run, again }, index) => {
      const earlier = sent[index]
      const lost = closed.get(earlier?.run ?? 0) !== 'finished'
      expect(
        lost && (again || !begun.has(earlier?.runId ?? '')),
        `the answer to ${id} was sent again in request ${run}`,
      ).toBe(true)
    })
  }
}

async function explore(numbers: readonly number[], Client = ChatClient): Promise<void> {
  const world = createWorld(numbers, Client)
  const { tape, server, client, timeline } = world
  const failures: unknown[] = []
  watchChanges(world, failures)
  const pending = watchRequests(world)
  await explained(timeline, async () => {
    say(world)
    const acts = tape.pick(12)
    for (let i = 0; i < acts; i++) {
      await (tape.chance(50) ? passMacrotasks(tape.pick(4)) : passMicrotasks(tape.pick(20)))
      actAtRandom(world)
    }
    await comeToAnEnd(world)
    if (failures.length > 0) throw failures[0]
    expect(server.mostStreams).toBeLessThanOrEqual(1)
    checkRequests(world, pending)
    checkOutcome(world)
    client.dispose()
  })
}

const tapes = fc.array(fc.nat({ max: 9_999 }), { minLength: 10, maxLength: 150, size: 'max' })

test('S4.59 the invariants hold on random timelines of answers, messages, stops, faults and ends', async () => {
  const seed = Number(process.env['SEED'] ?? 20_261)
  const numRuns = Number(process.env['TIMELINES'] ?? 300)
  const property = fc.asyncProperty(tapes, (tape) => explore(tape))
  await fc.assert(property, { seed, numRuns, interruptAfterTimeLimit: 50_000 })
})

test('the same timelines find out a client without its second flag', async () => {
  const Mutant = await loadWithoutSkippedFlag()
  const property = fc.asyncProperty(tapes, (tape) => explore(tape, Mutant))
  const { failed } = await fc.check(property, { seed: 20_261, numRuns: 300, endOnFailure: true })
  expect(failed).toBe(true)
})
