import {
  ChatClient,
  type ChatClientOptions,
  type Connection,
  clientTool,
  type ThreadRecord,
} from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { maskRecording, type Recording, readRecording, record, sourceOf } from '@countersign/devtools'
import {
  ask,
  call,
  clientReady,
  cut,
  error,
  gated,
  hold,
  macrotasks,
  passMacrotasks,
  type RunScript,
  replayRecording,
  resolve,
  result,
  scriptedConnection,
  text,
  textDelta,
  textEnd,
  textStart,
  until,
} from '@countersign/testing'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'

const chain: RunScript[] = [
  gated('A'),
  [resolve(), ...gated('B', 'send_mail', { to: 'team', apiKey: 'hunter2' }), hold('stream 2')],
  [resolve(), text('All ', 'done.')],
]

function openChat(runs: RunScript[], options: Partial<ChatClientOptions> = {}) {
  const server = scriptedConnection(runs)
  const client = new ChatClient({ connection: server, ...options })
  return { server, client, recorder: record(client) }
}

/** As a file carries it. */
const overFile = (recording: Recording) => readRecording(JSON.stringify(recording))

/** The person approves B while the stream that asked for it is open. */
async function playChain() {
  const chat = openChat(chain)
  const { client, server } = chat
  await client.sendMessage('Tidy up.')
  void client.addToolApprovalResponse({ id: 'aA', approved: true })
  await until(client, ({ pendingApprovals }) => pendingApprovals[0]?.approval?.id === 'aB')
  const second = client.addToolApprovalResponse({ id: 'aB', approved: true })
  server.release('stream 2')
  expect(await second).toEqual({ status: 'sent' })
  return chat
}

test('the chained scenario is recorded with its requests, acts, ends, states and both flags', async () => {
  const { recorder } = await playChain()
  const { entries } = recorder.recording()
  expect(entries.flatMap((entry) => (entry.kind === 'act' ? [entry.act?.name] : []))).toEqual([
    'sendMessage',
    'addToolApprovalResponse',
    'addToolApprovalResponse',
  ])
  expect(entries.filter(({ kind }) => kind === 'request')).toHaveLength(3)
  expect(entries.flatMap((entry) => (entry.kind === 'closed' ? [entry.how] : []))).toEqual([
    'finished',
    'finished',
    'finished',
  ])
  const flags = entries.flatMap((entry) => (entry.kind === 'state' ? [entry.flags] : []))
  expect(flags).toContainEqual({ continuationPending: true, continuationSkipped: true })
  expect(flags.at(-1)).toEqual({ continuationPending: false, continuationSkipped: false })
})

test.each([true, false])(
  'the recording of the chained scenario replays to the same states (masked: %s)',
  async (masked) => {
    const { client, recorder } = await playChain()
    const recording = overFile(recorder.recording({ masked }))
    const replayed = await replayRecording(recording)
    expect(replayed.requests).toHaveLength(3)
    expect(replayed.client.inspect()).toMatchObject({
      continuationPending: false,
      continuationSkipped: false,
    })
    if (!masked) expect(replayed.client.getSnapshot()).toEqual(client.getSnapshot())
    expect(JSON.stringify(replayed.entries).includes('hunter2')).toBe(!masked)
  },
)

const locate = clientTool({
  name: 'locate',
  description: 'Where this is',
  input: z.object({}),
  execute: async () => {
    await macrotasks(3)
    return { city: 'Bern' }
  },
})

test('client tools, faults, a retry, a queue, a stop and a denial replay to the same states', async () => {
  const { client, server, recorder } = openChat(
    [
      [call('c1', 'locate'), ask('a1', 'c1')],
      [clientReady('c1')],
      [text('You are in Bern.'), ...gated(2), cut('gone')],
      [textStart(), textDelta('Again: '), hold('words'), textDelta('Bern.'), textEnd(), ...gated(3)],
      [resolve(), error('overloaded')],
      [resolve(), textStart(), textDelta('Left it. '), hold('stopped'), textEnd()],
      [text('Next.')],
    ],
    { tools: [locate] },
  )
  await client.sendMessage('Where am I?')
  await client.addToolApprovalResponse({ id: 'a1', approved: true })
  await until(client, ({ status }) => status === 'error')
  await client.addToolApprovalResponse({ id: 'nothing', approved: true })
  void client.retry()
  await server.held('words')
  void client.sendMessage({ text: 'And then?', metadata: { from: 'test' } })
  server.release('words')
  await until(client, ({ pendingApprovals }) => pendingApprovals.some(({ id }) => id === 'c3'))
  for (const { approval } of client.getSnapshot().pendingApprovals) {
    if (approval) void client.addToolApprovalResponse({ id: approval.id, approved: false, reason: 'no' })
  }
  await until(client, ({ status }) => status === 'error')
  void client.retry()
  await server.held('stopped')
  client.stop()
  await client.sendMessage('Go on.')
  const recording = overFile(recorder.recording())
  const replayed = await replayRecording(recording)
  expect(replayed.requests).toHaveLength(server.requests.length)
  const then = sourceOf(recording).stateAt(recording.entries.length - 1)
  expect(replayed.client.getSnapshot().messages).toEqual(then.snapshot.messages)
})

test('the state at each entry is the one the client had then', async () => {
  const server = scriptedConnection(chain)
  const client = new ChatClient({ connection: server, notify: 'sync' })
  const seen: unknown[] = []
  server.release('stream 2')
  client.observe(() => seen.push([recorder.entries.length, client.getSnapshot()]))
  const recorder = record(client)
  await client.sendMessage('Tidy up.')
  await client.addToolApprovalResponse({ id: 'aA', approved: true })
  expect(seen.length).toBeGreaterThan(20)
  for (const [count, snapshot] of seen as [number, unknown][]) {
    if (count > 0) expect(recorder.stateAt(count - 1).snapshot).toEqual(snapshot)
  }
})

test('a changed recording does not replay: the first entry that differs is named', async () => {
  const { recorder } = await playChain()
  const recording = recorder.recording()
  const entries = recording.entries.map((entry) =>
    entry.kind === 'act' && JSON.stringify(entry).includes('aB')
      ? { ...entry, act: { name: 'addToolApprovalResponse', value: { id: 'aB', approved: false } } }
      : entry,
  )
  await expect(replayRecording({ ...recording, entries })).rejects.toThrow(/another story from entry \d+ on/)
})

test('a recorder holds its last entries; what it exports then begins at an action, says what is cut, and replays', async () => {
  const server = scriptedConnection([], { otherwise: [text('One ', 'two ', 'three.')] })
  const client = new ChatClient({ connection: server })
  const recorder = record(client, { limit: 60 })
  for (let turn = 0; turn < 20; turn++) await client.sendMessage(`Turn ${turn}`)
  expect(recorder.entries.length).toBeLessThanOrEqual(67)
  const recording = recorder.recording()
  expect(recording.cut).toBeGreaterThan(recorder.cut)
  expect(recording.entries[0]).toMatchObject({ kind: 'act' })
  const replayed = await replayRecording(recording)
  expect(replayed.client.getSnapshot().messages).toEqual(client.getSnapshot().messages)
})

test('a recording that begins inside of a run waits for its end', async () => {
  const { client, server } = openChat([[text('Hello.'), hold('open')], [text('Again.')]])
  const sent = client.sendMessage('Hi')
  await server.held('open')
  const late = record(client)
  expect(late.waiting).toBe(true)
  server.release('open')
  await sent
  await client.sendMessage('More')
  const replayed = await replayRecording(late.recording())
  expect(replayed.client.getSnapshot().messages).toEqual(client.getSnapshot().messages)
})

test('without an observer nothing is called, and one that left is not called any more', async () => {
  const { client, recorder } = openChat([[text('Hello.')], [text('Again.')]])
  await client.sendMessage('Hi')
  const count = recorder.entries.length
  recorder.stop()
  await client.sendMessage('More')
  await passMacrotasks(2)
  expect(recorder.entries).toHaveLength(count)
})

test('an observer that throws disturbs nobody', async () => {
  const { client } = openChat([[text('Hello.')]])
  const reported: unknown[] = []
  const { reportError } = globalThis
  globalThis.reportError = (error) => reported.push(error)
  client.observe(() => {
    throw new Error('broken')
  })
  expect(await client.sendMessage('Hi')).toEqual({ status: 'sent' })
  globalThis.reportError = reportError
  expect(reported.length).toBeGreaterThan(0)
})

test('masking a recording twice is masking it once', async () => {
  const { recorder } = await playChain()
  const once = recorder.recording()
  expect(maskRecording(once)).toEqual(once)
})

test('a live answer, a run that is taken up again, and a request whose time runs out replay', async () => {
  const server = scriptedConnection([
    [...gated(1), hold('answer'), result('c1'), textStart(), textDelta('Done '), cut('gone')],
    [call('c2', 'delete_file'), ask('a2', 'c2', { expiresAt: new Date(Date.now() + 150).toISOString() })],
  ])
  const connection: Connection = {
    connect: server.connect,
    answer: async () => server.release('answer'),
    async *rejoin({ threadId, runId }) {
      yield { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm2', delta: 'again.' }
      yield { type: 'TEXT_MESSAGE_END', messageId: 'm2' }
      yield { type: 'RUN_FINISHED', threadId, runId }
    },
  }
  const client = new ChatClient({ connection })
  const recorder = record(client)
  void client.sendMessage('Tidy up.')
  await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
  await client.addToolApprovalResponse({ id: 'a1', approved: true })
  await until(client, ({ status }) => status === 'error')
  await client.retry()
  await client.sendMessage('And the other one.')
  const detach = client.attach()
  await until(client, ({ pendingApprovals }) => pendingApprovals.length === 0)
  detach()
  const recording = overFile(recorder.recording({ masked: false }))
  const steps = recording.entries.flatMap((entry) => ('step' in entry && entry.step ? [entry.step.type] : []))
  expect(steps).toEqual(expect.arrayContaining(['answer-sent', 'run-rejoined', 'close']))
  const replayed = await replayRecording(recording)
  expect(replayed.client.getSnapshot().messages).toEqual(client.getSnapshot().messages)
})

test('a conversation that is loaded from where it is kept is the beginning of a recording', async () => {
  let kept: ThreadRecord | undefined
  const storage = () =>
    persistent({
      load: async () => kept,
      save: async (_, next) => {
        kept = structuredClone(next)
      },
      remove: async () => {},
    })
  const first = openChat([gated(1)], { threadId: 't', persistence: storage() })
  await first.client.sendMessage('Tidy up.')
  await vi.waitFor(() => expect(kept?.messages).toHaveLength(2))
  const { client, recorder } = openChat([[resolve(), text('Done.')]], {
    threadId: 't',
    persistence: storage(),
  })
  await client.restore()
  expect(recorder.entries).toEqual([])
  await client.addToolApprovalResponse({ id: 'a1', approved: true })
  const recording = overFile(recorder.recording({ masked: false }))
  expect(recording.start.messages).toHaveLength(2)
  const replayed = await replayRecording(recording)
  expect(replayed.client.getSnapshot().messages).toEqual(client.getSnapshot().messages)
})

test('what begins inside of a run, or in a tab that follows, is not replayed and says so', async () => {
  const { client, server, recorder } = openChat([[text('Hello.'), hold('open'), text('World.')]])
  const sent = client.sendMessage('Hi')
  await server.held('open')
  recorder.clear()
  server.release('open')
  await sent
  await expect(replayRecording(recorder.recording())).rejects.toThrow('begins inside of a run')
})

test.each([0, -1, Number.NaN])('a limit of %s is refused', (limit) => {
  const client = new ChatClient({ connection: scriptedConnection([]) })
  expect(() => record(client, { limit })).toThrow(expect.objectContaining({ code: 'invalid-option' }))
})
