import type { AnswerResult, ChatClient, SendResult, ToolCallPart } from '@countersign/client'
import { type Facts, type GivenAnswer, violate } from './facts.js'
import type { ActName, Model } from './model.js'
import type { Moment } from './observed.js'

/** Something the user does. `id`: of a request, or of the call for `by-call`. */
export type Act =
  | {
      readonly act: 'approve' | 'deny' | 'repeat' | 'contradict' | 'by-call' | 'withdraw' | 'cancel'
      readonly id: string
    }
  | { readonly act: 'send'; readonly text: string }
  | { readonly act: 'stop' | 'retry' | 'approve-all' }

function printAct(act: Act): string {
  if ('id' in act) return `${act.act} ${act.id}`
  return 'text' in act ? `${act.act} ${act.text}` : act.act
}

/** What the user could do now, out of what the model allows. */
export function enabledActs(model: Model, facts: Facts): Act[] {
  const { pendingApprovals } = facts.client.getSnapshot()
  const last = [...facts.answers.values()].at(-1)
  return model.acts.flatMap((name) => actsOf(name, pendingApprovals, last, facts))
}

function actsOf(
  name: ActName,
  pending: readonly ToolCallPart[],
  last: GivenAnswer | undefined,
  facts: Facts,
): Act[] {
  switch (name) {
    case 'approve':
    case 'deny':
    case 'cancel':
      return pending.flatMap(({ approval }) => (approval ? [{ act: name, id: approval.id }] : []))
    case 'repeat':
    case 'contradict':
    case 'withdraw':
      return last ? [{ act: name, id: last.id }] : []
    case 'by-call':
      return pending.slice(0, 1).map(({ id }) => ({ act: name, id }))
    case 'send':
      return [{ act: name, text: `u${facts.said.length + 1}` }]
    case 'approve-all':
      return pending.length > 1 ? [{ act: name }] : []
    case 'stop':
      return facts.held ? [] : [{ act: name }]
    case 'retry':
      return [{ act: name }]
    default:
      return name satisfies never
  }
}

/** Does it, notes it, and checks what the user is told of it. Gives back a promise that never rejects. */
export function perform(facts: Facts, model: Model, act: Act, moment: Moment): Promise<void> {
  const text = printAct(act)
  facts.log.push({ kind: 'act', act: text, moment })
  const outer = facts.acting
  facts.acting = act.act
  try {
    return watched(facts, text, doIt(facts, model, act))
  } catch (error) {
    violate(facts, 'told', `${text} threw ${String(error)}`)
    return Promise.resolve()
  } finally {
    facts.acting = outer
    if (act.act === 'withdraw' && !['between', 'same-tick', 'microtask'].includes(moment.at))
      facts.isLate = true
  }
}

async function watched(facts: Facts, text: string, told: Promise<Told>): Promise<void> {
  try {
    const { status, problem } = await told
    facts.log.push({ kind: 'told', act: text, status })
    if (problem !== undefined) violate(facts, 'told', `${text} was told "${status}": ${problem}`)
  } catch (error) {
    violate(facts, 'told', `${text} was rejected: ${String(error)}`)
  }
}

interface Told {
  readonly status: string
  readonly problem: string | undefined
}

function doIt(facts: Facts, model: Model, act: Act): Promise<Told> {
  const { client } = facts
  switch (act.act) {
    case 'approve':
    case 'deny':
      return answer(facts, act.id, act.act === 'approve')
    case 'repeat':
    case 'contradict': {
      const first = facts.answers.get(act.id)?.approved === true
      return answer(facts, act.id, act.act === 'repeat' ? first : !first)
    }
    case 'by-call':
      return answer(facts, act.id, true)
    case 'approve-all':
      return approveAll(facts)
    case 'withdraw':
      return withdraw(facts, act.id)
    case 'cancel':
      return cancel(facts, act.id)
    case 'send':
      return send(facts, model, act.text)
    case 'stop':
      return stop(facts)
    case 'retry':
      return again(facts, client.retry)
    default:
      return act satisfies never
  }
}

/** Does nothing while a run is open. */
async function again(facts: Facts, action: () => Promise<void>): Promise<Told> {
  if (!facts.client.getSnapshot().isLoading) release(facts)
  await action()
  return { status: 'done', problem: undefined }
}

/** The user acts: what a stop or a failure held back may go on. */
function release(facts: Facts): void {
  facts.releases++
  facts.held = undefined
  facts.failed = false
}

function shownCall(client: ChatClient, approvalId: string): ToolCallPart | undefined {
  for (const { parts } of client.getSnapshot().messages)
    for (const part of parts) if (part.type === 'tool-call' && part.approval?.id === approvalId) return part
  return undefined
}

/** All open requests, in one command. */
async function approveAll(facts: Facts): Promise<Told> {
  const ids = facts.client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)
  const given = ids.map((id): GivenAnswer => ({ id, approved: true, entry: undefined, carried: [] }))
  release(facts)
  for (const one of given) facts.answers.set(one.id, one)
  const told = await facts.client.addToolApprovalResponses(ids.map((id) => ({ id, approved: true })))
  const problems = given.map((one, at) => {
    const result = told[at]
    return result ? problemOf(one, result, shownCall(facts.client, one.id)) : 'it has no result'
  })
  return {
    status: told.map(({ status }) => status).join(),
    problem: problems.find((one) => one !== undefined),
  }
}

/** Takes the last answer back, which is only possible if no request has carried it. */
async function withdraw(facts: Facts, id: string): Promise<Told> {
  const given = facts.answers.get(id)
  const wasWithdrawn = given?.isWithdrawn === true
  facts.reopening.add(id)
  const told = facts.client.withdrawApprovalResponse(id)
  // A listener may have answered or cancelled again at once.
  const isAnswered = facts.answers.get(id) !== given
  const wasOpen = given?.isWithdrawn === true && !wasWithdrawn
  const isOpen = isAnswered || wasOpen || shownCall(facts.client, id)?.state === 'approval-requested'
  const isWithdrawn = given !== undefined && !wasWithdrawn && isOpen
  const carried = given?.carried.length ?? 0
  if (isWithdrawn) {
    given.isWithdrawn = true
    if (!isAnswered) facts.answers.delete(id)
  } else facts.reopening.delete(id)
  const was = await told
  const problem = was !== isWithdrawn ? `it is ${isOpen ? 'open' : 'not open'}` : undefined
  return { status: `${was}`, problem: was && carried > 0 ? 'a request has carried it' : problem }
}

/** Neither yes nor no: the request is closed. */
async function cancel(facts: Facts, id: string): Promise<Told> {
  const before = shownCall(facts.client, id)
  const open = before?.state === 'approval-requested' && before.approval?.problem === undefined
  if (open) release(facts)
  const told = facts.client.addToolApprovalResponse({ id, cancel: true })
  if (open && shownCall(facts.client, id)?.state !== 'cancelled')
    violate(facts, 'consistent', `The cancelled request ${id} is not shown as cancelled.`)
  const { status } = await told
  if (!open) return { status, problem: closedProblem(before, await told) }
  const isFine = /^(sent|waiting|failed|closed)$/.test(status)
  return { status, problem: isFine ? undefined : 'the request was open' }
}

async function answer(facts: Facts, id: string, approved: boolean): Promise<Told> {
  const before = shownCall(facts.client, id)
  const open = before?.state === 'approval-requested' && before.approval?.problem === undefined
  const given: GivenAnswer | undefined = open ? { id, approved, entry: undefined, carried: [] } : undefined
  if (given) {
    release(facts)
    facts.answers.set(id, given)
  }
  const result = facts.client.addToolApprovalResponse({ id, approved })
  if (given && shownCall(facts.client, id)?.approval?.approved !== approved)
    violate(facts, 'consistent', `The answer to ${id} is not shown.`)
  const told = await result
  return {
    status: told.status,
    problem: given ? problemOf(given, told, shownCall(facts.client, id)) : closedProblem(before, told),
  }
}

function problemOf(
  given: GivenAnswer,
  { status }: AnswerResult,
  call: ToolCallPart | undefined,
): string | undefined {
  const { carried } = given
  // its result is here, whatever became of the run after it
  if (given.isWithdrawn)
    return /^(closed|waiting)$/.test(status) ? undefined : 'it was taken back before a request carried it'
  const tookEffect = call?.approval?.delivery === 'settled' && call.approval.problem === undefined
  const arrived = tookEffect || carried.some(({ acknowledged, end }) => acknowledged && end !== 'failed')
  switch (status) {
    case 'sent':
      return arrived ? undefined : 'no request that carried it was acknowledged, or it has failed'
    case 'failed':
      if (tookEffect) return 'the call became what the answer said'
      return carried.some(({ end }) => end === 'failed') ? undefined : 'no request that carried it has failed'
    case 'waiting':
      return arrived ? 'the server has it' : undefined
    default:
      return 'it was the first answer to an open request'
  }
}

function closedProblem(before: ToolCallPart | undefined, { status }: AnswerResult): string | undefined {
  const expected = !before
    ? 'not-found'
    : before.approval?.approved === undefined
      ? 'closed'
      : 'already-answered'
  return status === expected ? undefined : `it should be "${expected}"`
}

async function send(facts: Facts, model: Model, text: string): Promise<Told> {
  const refused = model.mode === 'reject' && facts.client.getSnapshot().pendingApprovals.length > 0
  facts.said.push({ text, refused })
  if (!refused) release(facts)
  const told = await facts.client.sendMessage(text, { forwardedProps: { said: text } })
  return { status: told.status, problem: sendProblem(facts, text, refused, told) }
}

function sendProblem(facts: Facts, text: string, refused: boolean, told: SendResult): string | undefined {
  const runs = facts.runs.filter(({ input }) =>
    input.messages.some((message) => message.role === 'user' && message.content === text),
  )
  switch (told.status) {
    case 'refused':
      return refused ? undefined : 'nothing speaks against it'
    case 'sent':
      return runs.length > 0 && !refused ? undefined : 'no request has it'
    case 'stopped':
      return runs.some(({ end }) => end === 'stopped') ? undefined : 'no request that has it was stopped'
    case 'failed':
      return runs.some(({ end }) => end === 'failed') ? undefined : 'no request that has it failed'
    case 'queued':
      return refused ? 'it should be refused' : undefined
    default:
      return told satisfies never
  }
}

async function stop(facts: Facts): Promise<Told> {
  const { releases } = facts
  const { openRun } = facts.client.inspect()
  const open = facts.runs.findLast(({ end, input }) => end === 'open' && input.runId === openRun)
  if (open) open.end = 'stopped'
  facts.client.stop()
  const { status, messages, isLoading } = facts.client.getSnapshot()
  // whoever heard of the stop may have acted at once
  if (facts.releases === releases) {
    facts.held = { messages }
    if (isLoading) violate(facts, 'quiet', `After stop() the status is ${status}.`)
  }
  return { status: 'done', problem: undefined }
}
