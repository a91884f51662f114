import {
  type AGUIEvent,
  areAllToolsComplete,
  type ChatState,
  CountersignError,
  clientCalls,
  createChatState,
  findAnswerable,
  hasDeferredAnswer,
  hasUnsentAnswer,
  type Interrupt,
  isRecord,
  isTerminal,
  type LocalEvent,
  type ResumeEntry,
  type RunFinishedOutcome,
  readMessages,
  readRecord,
  restoreSteps,
  resumeEntries,
  step,
  toAGUIMessages,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import fc from 'fast-check'
import { expect, test } from 'vitest'

// A server that repeats call ids and numbers its requests anew in each run, a network that cuts streams, snapshots older than the stream.

const seed = 20_261_125

/** What happens next. What is not possible at that moment is left out. */
const act = fc.record({
  does: fc.constantFrom(
    ...([
      'call',
      'call',
      'call',
      'ask',
      'interrupts',
      'interrupts',
      'result',
      'snapshot',
      'success',
    ] as const),
    ...(['cut', 'refused', 'open', 'retry', 'say', 'answer', 'answer', 'tool', 'expire'] as const),
  ),
  id: fc.constantFrom('c0', 'c1', 'c2'),
  request: fc.constantFrom('int-0', 'int-0', 'int-1'),
  yes: fc.boolean(),
})
type Act = typeof act extends fc.Arbitrary<infer Value> ? Value : never

/** Their order is that in which they were given; a record has that of the conversation. */
const byId = (entries: readonly ResumeEntry[]) =>
  entries.toSorted((a, b) => a.interruptId.localeCompare(b.interruptId))

class Page {
  readonly state: ChatState = createChatState({ moreSteps: { ...fullSteps, ...restoreSteps } })

  do(...steps: readonly (AGUIEvent | LocalEvent)[]): void {
    for (const one of steps) step(this.state, one)
  }

  get calls() {
    return readMessages(this.state).flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool-call' ? [part] : [])),
    )
  }

  get pending() {
    return this.calls.filter((call) => call.state === 'approval-requested')
  }

  /** The same conversation in a new page. */
  reloaded(): Page {
    const page = new Page()
    page.do({ type: 'restore', record: JSON.parse(JSON.stringify(readRecord(this.state))) })
    return page
  }

  /** Everything that decides what happens next. */
  get outlook() {
    const { state } = this
    return {
      sends: byId(resumeEntries(state, false)),
      repeats: byId(resumeEntries(state, true)),
      isReady: areAllToolsComplete(state),
      sendsAnswers: hasUnsentAnswer(state),
      retries: hasDeferredAnswer(state),
      runsHere: clientCalls(state),
      calls: this.calls.map((call) => [call.id, call.input, call.state, call.approval, call.error]),
      answerable: this.pending.map(({ approval }) => findAnswerable(state, approval?.id ?? '').status),
    }
  }
}

const user = (id: string): LocalEvent => ({
  type: 'user-message',
  message: { id, role: 'user', parts: [{ type: 'text', text: id }] },
})

function callsOfRun({ run, order }: ChatState) {
  const from = run.phase === 'idle' ? order.length : run.from[0]
  return order.slice(from).flatMap(({ parts }) => parts.filter((part) => part.kind === 'call'))
}

const isOpenInRun = (state: ChatState, id: string) =>
  callsOfRun(state).some((call) => call.id === id && !isTerminal(call.state))

const isAskedInRun = (state: ChatState, request: string) =>
  callsOfRun(state).some(({ approval }) => approval?.id === request)

/** The events of one act at the moment of the page. */
function eventsOf({ state, calls, pending }: Page, { does, id, request, yes }: Act, n: number) {
  const events: (AGUIEvent | LocalEvent)[] = []
  const isOpen = state.run.phase === 'streaming'
  const open = () =>
    events.push(
      { type: 'run-opened', runId: `run-${n}` },
      { type: 'RUN_STARTED', threadId: 't', runId: `run-${n}`, protocolVersion: '1.0' },
    )
  const close = (outcome: RunFinishedOutcome) =>
    events.push(
      { type: 'RUN_FINISHED', threadId: 't', runId: `run-${n}`, outcome },
      { type: 'run-closed', end: { type: 'success' } },
    )
  switch (does) {
    case 'call':
      // No server calls again under the id of a call of the same run that is open.
      if (isOpen && !isOpenInRun(state, id))
        events.push(
          { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'act', parentMessageId: `m-${n}` },
          { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: `{"n":${n}}` },
          { type: 'TOOL_CALL_END', toolCallId: id },
        )
      break
    case 'ask': {
      const approval = { id: request, options: ['deny', 'once'] }
      const { input } = calls.findLast((call) => call.id === id) ?? {}
      const value = { toolCallId: id, approval, ...(yes && { input }) }
      if (isOpen && !isAskedInRun(state, request))
        events.push({ type: 'CUSTOM', name: 'approval-requested', value })
      break
    }
    case 'result':
      if (isOpen)
        events.push({
          type: 'TOOL_CALL_RESULT',
          messageId: `r-${n}`,
          toolCallId: id,
          role: 'tool',
          content: '1',
        })
      break
    case 'snapshot': {
      const messages = toAGUIMessages(readMessages(state))
      if (isOpen) events.push({ type: 'MESSAGES_SNAPSHOT', messages: yes ? messages : messages.slice(0, -1) })
      break
    }
    case 'interrupts': {
      const open = calls.filter((call) => call.state === 'input-complete').slice(-2)
      const interrupts = open.map(
        (call, at): Interrupt => ({ id: `int-${at}`, reason: 'tool_call', toolCallId: call.id }),
      )
      if (isOpen && interrupts.length > 0) close({ type: 'interrupt', interrupts })
      break
    }
    case 'success':
      if (isOpen) close({ type: 'success', ...(yes && { pendingToolCallIds: [id] }) })
      break
    case 'cut':
    case 'refused': {
      const error =
        does === 'cut' || isOpen
          ? new CountersignError('connection-failed', 'cut')
          : new CountersignError('http-status', 'no', { status: 413 })
      if (state.run.phase !== 'idle') events.push({ type: 'run-closed', end: { type: 'failed', error } })
      else if (does === 'refused')
        events.push(
          { type: 'run-opened', runId: `run-${n}` },
          { type: 'run-closed', end: { type: 'failed', error } },
        )
      break
    }
    case 'open':
    case 'retry':
      if (state.run.phase !== 'idle') break
      if (does === 'retry') events.push({ type: 'drop-unfinished' })
      open()
      break
    case 'say':
      if (state.run.phase !== 'idle') break
      events.push(
        { type: 'close', ids: pending.flatMap(({ approval }) => approval?.id ?? []), because: 'moved-on' },
        user(`u-${n}`),
      )
      open()
      break
    case 'answer':
      events.push({ type: 'answer', approvalId: request, approved: yes })
      break
    case 'expire':
      if (yes) events.push({ type: 'close', ids: [request], because: 'expired' })
      break
    case 'tool': {
      const [call] = state.run.phase === 'idle' ? clientCalls(state) : []
      if (call)
        events.push(
          { type: 'tool-started', toolCallId: call.id },
          { type: 'tool-output', toolCallId: call.id, messageId: `o-${n}`, output: n },
        )
      break
    }
    default:
      does satisfies never
  }
  return events
}

const closedBy: LocalEvent = {
  type: 'run-closed',
  end: { type: 'failed', error: new CountersignError('connection-failed', 'cut') },
}

test(`a reload changes nothing: not what is pending, not the next request, not the client tools that run (seed ${seed})`, () => {
  let reloads = 0
  let pending = 0
  let sends = 0
  fc.assert(
    fc.property(fc.array(act, { minLength: 8, maxLength: 30, size: 'max' }), fc.nat(20), (acts, at) => {
      const page = new Page()
      page.do(user('u'), ...eventsOf(page, { does: 'open', id: 'c0', request: 'int-0', yes: true }, 100))
      let other: Page | undefined
      acts.forEach((one, n) => {
        if (n === at) {
          // A page that closes breaks its run. A record does not tell the answers that this run carried from those of an earlier one,
          // and the outputs that it carried are sent again.
          const { run } = page.state
          const sent = page.calls.filter(({ approval }) => approval?.delivery === 'sent')
          const carried = run.phase === 'idle' ? [] : run.carried
          const hasOutput = carried.some((item) => item.kind === 'call' && item.outputSent !== undefined)
          if (run.phase !== 'idle' && (hasOutput || sent.length > carried.length)) return
          other = page.reloaded()
          page.do(closedBy)
          reloads++
        }
        const events = eventsOf(page, one, n)
        page.do(...events)
        other?.do(...events)
        if (other) {
          expect(other.outlook).toEqual(page.outlook)
          pending += page.pending.length
          sends += page.outlook.repeats.length
        }
      })
    }),
    { seed, numRuns: 1500 },
  )
  console.log(`seed ${seed}: ${reloads} reloads, ${pending} pending requests and ${sends} entries compared`)
  expect(Math.min(reloads, pending, sends)).toBeGreaterThan(500)
})

test(`no two entries of a request have one id, and none has that of a pending request (seed ${seed})`, () => {
  let entries = 0
  fc.assert(
    fc.property(fc.array(act, { minLength: 8, maxLength: 40, size: 'max' }), (acts) => {
      const page = new Page()
      page.do(user('u'), ...eventsOf(page, { does: 'open', id: 'c0', request: 'int-0', yes: true }, 100))
      acts.forEach((one, n) => {
        page.do(...eventsOf(page, one, n))
        const ids = resumeEntries(page.state, true).map(({ interruptId }) => interruptId)
        expect(new Set(ids).size).toBe(ids.length)
        for (const { approval } of page.pending) expect(ids).not.toContain(approval?.id)
        entries += ids.length
      })
    }),
    { seed, numRuns: 1500 },
  )
  expect(entries).toBeGreaterThan(500)
})

test(`no answer is sent for a request whose shown arguments are not those that the server asked about, whatever snapshots say (seed ${seed})`, () => {
  let compared = 0
  let older = 0
  fc.assert(
    fc.property(fc.array(act, { minLength: 8, maxLength: 40, size: 'max' }), fc.nat(20), (acts, at) => {
      let page = new Page()
      /** What the server asked about under each id, and the conversation as it was. */
      const askedAbout = new Map<string, unknown>()
      const past: ReturnType<typeof toAGUIMessages>[] = []
      page.do(user('u'), ...eventsOf(page, { does: 'open', id: 'c0', request: 'int-0', yes: true }, 100))
      acts.forEach((one, n) => {
        if (n === at && page.state.run.phase === 'idle') page = page.reloaded()
        const isOlder = one.does === 'snapshot' && one.request === 'int-1' && past.length > 0
        const events = isOlder ? [olderSnapshot(past, n)] : eventsOf(page, one, n)
        if (isOlder) older++
        for (const event of events) {
          if (event.type === 'CUSTOM' && isRecord(event.value)) {
            if (event.value.input === undefined) askedAbout.delete(one.request)
            else askedAbout.set(one.request, event.value.input)
          }
          if (event.type === 'RUN_FINISHED' && event.outcome?.type === 'interrupt')
            for (const { id } of event.outcome.interrupts) askedAbout.delete(id)
        }
        page.do(...events)
        past.push(toAGUIMessages(readMessages(page.state)))
        const yes = resumeEntries(page.state, true).filter(
          ({ status, payload }) => status === 'resolved' && isRecord(payload) && payload.approved === true,
        )
        const shown = [
          ...page.pending.flatMap(({ approval }) => (approval && !approval.problem ? [approval.id] : [])),
          ...yes.map((e) => e.interruptId),
        ]
        for (const id of shown) {
          if (!askedAbout.has(id)) continue
          const inputs = page.calls.filter(({ approval }) => approval?.id === id).map(({ input }) => input)
          expect(inputs).toContainEqual(askedAbout.get(id))
          compared++
        }
      })
    }),
    { seed, numRuns: 1500 },
  )
  console.log(`seed ${seed}: ${compared} requests compared, ${older} older snapshots`)
  expect(Math.min(compared, older)).toBeGreaterThan(500)
})

/** An earlier state of the conversation under other message ids. */
function olderSnapshot(past: readonly ReturnType<typeof toAGUIMessages>[], n: number): AGUIEvent {
  const messages = past[(n * 7) % past.length] ?? []
  return {
    type: 'MESSAGES_SNAPSHOT',
    messages: messages.map((message) => ({ ...message, id: `old-${message.id}` })),
  }
}
