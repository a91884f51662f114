import type { ResumeEntry, RunAgentInput } from '@countersign/core'
import { type Facts, isOpen, type ServedRun, violate } from './facts.js'
import { historyOf } from './model-server.js'

/** Checks a request the moment it is made, and notes what it carries. */
export function checkRequest(facts: Facts, run: ServedRun): void {
  const { number, input } = run
  if (facts.runs.some((other) => other !== run && isOpen(other)))
    violate(facts, 'single', `Request ${number} was made while a stream was open.`)
  if (facts.held && run.cause === undefined)
    violate(facts, 'quiet', `Request ${number} was made after stop() without an act.`)
  checkCause(facts, run)
  checkHistory(facts, input)
  checkUserMessages(facts, input)
  checkResults(facts, input)
  checkOptions(facts, run)
  const ids = (input.resume ?? []).map((entry) => entry.interruptId)
  if (new Set(ids).size < ids.length)
    violate(facts, 'delivered', `Request ${number} has an answer twice: ${ids}.`)
  for (const entry of input.resume ?? []) checkEntry(facts, run, entry)
}

/** What a request brings that no earlier one has brought. */
function newsOf(facts: Facts, { number, input, cause }: ServedRun) {
  const before = facts.runs.filter((run) => run.number < number)
  const known = new Set(before.flatMap((run) => userTexts(run.input)))
  const acknowledged = before.filter((run) => run.acknowledged)
  const results = new Set(acknowledged.flatMap((run) => toolResults(run.input)))
  const fresh = (input.resume ?? []).filter(({ interruptId }) => !isDelivered(facts, interruptId))
  return {
    users: userTexts(input).filter((text) => !known.has(text)).length,
    answers: fresh.filter(({ status }) => status === 'resolved').length,
    cancelled: fresh.filter(({ status }) => status === 'cancelled').length,
    outputs: clientResults(facts, input).filter((id) => !results.has(id)).length,
    again: cause === 'retry',
  }
}

function checkCause(facts: Facts, run: ServedRun): void {
  const news = newsOf(facts, run)
  if (news.again) return
  if (news.users === 0) checkContinuation(facts, run, news)
  else if (run.cause === undefined && !facts.failed && news.answers > 0 && news.cancelled === 0)
    violate(
      facts,
      'order',
      `Request ${run.number} takes a queued message and answers that could have gone before it.`,
    )
}

function checkContinuation(facts: Facts, run: ServedRun, news: ReturnType<typeof newsOf>): void {
  if (news.answers + news.outputs === 0)
    violate(facts, 'something', `Request ${run.number} brings nothing that is new.`)
  if (run.cause === undefined && facts.failed)
    violate(facts, 'something', `Request ${run.number} follows a failed stream without an act.`)
  const waiting = facts.client.getSnapshot().messages.flatMap(({ role, parts }, index, all) => {
    if (role === 'user' || all.findLastIndex((message) => message.role === 'user') > index) return []
    return parts.filter((part) => part.type === 'tool-call' && part.state === 'approval-requested')
  })
  if (waiting.length > 0)
    violate(
      facts,
      'sibling',
      `Request ${run.number} goes on although ${waiting.length} requests wait for an answer.`,
    )
}

function checkEntry(facts: Facts, run: ServedRun, entry: ResumeEntry): void {
  const { interruptId: id, status, payload } = entry
  const made = facts.server.asked.get(id)
  const shown = facts.client.getSnapshot().messages.flatMap(({ parts }) => parts)
  const part = shown.find((part) => part.type === 'tool-call' && part.approval?.id === id)
  const approval = part?.type === 'tool-call' ? part.approval : undefined
  const answer = facts.answers.get(id)
  if (!made || !approval) {
    violate(facts, 'consistent', `Request ${run.number} answers ${id}, which nobody asked.`)
    return
  }
  if (approval.token !== entry.metadata?.['countersign']?.token)
    violate(facts, 'consistent', `Request ${run.number} answers ${id} without its token.`)
  if (status === 'cancelled') {
    if (answer && !answer.isWithdrawn)
      violate(facts, 'consistent', `Request ${run.number} cancels ${id}, which was answered.`)
    return
  }
  if (!answer) {
    violate(facts, 'person', `Request ${run.number} answers ${id}; the user did not.`)
    return
  }
  if (payload?.approved !== answer.approved || approval.approved !== answer.approved)
    violate(
      facts,
      'consistent',
      `${id} was answered ${answer.approved}, is shown as ${approval.approved} and sent as ${payload?.approved}.`,
    )
  const text = JSON.stringify(entry)
  if (answer.entry !== undefined && answer.entry !== text)
    violate(facts, 'delivered', `The answer to ${id} changed from ${answer.entry} to ${text}.`)
  answer.entry = text
  const before = answer.carried.filter((other) => other.acknowledged)
  const again = run.cause === 'retry'
  if (before.some(({ end }) => end === 'finished') || (before.length > 0 && !again))
    violate(facts, 'delivered', `The answer to ${id} reaches the server again with request ${run.number}.`)
  answer.carried.push(run)
}

export function isDelivered(facts: Facts, id: string): boolean {
  return facts.answers.get(id)?.carried.some((run) => run.acknowledged) === true
}

/** No answer rides in the history that the user did not give. */
function checkHistory(facts: Facts, { messages }: RunAgentInput): void {
  for (const { id, approved } of historyOf(messages)) {
    if (approved !== undefined && facts.answers.get(id)?.approved !== approved)
      violate(facts, 'person', `The history says ${id} was answered ${approved}; the user did not say so.`)
  }
}

function checkUserMessages(facts: Facts, input: RunAgentInput): void {
  const texts = userTexts(input)
  const wanted = facts.said.filter(({ refused }) => !refused).map(({ text }) => text)
  if (texts.some((text, index) => text !== wanted[index]))
    violate(facts, 'messages', `The server reads [${texts}] where the user said [${wanted}].`)
}

/** A message's own options go with the request that brings it. */
function checkOptions(facts: Facts, { number, input }: ServedRun): void {
  const before = facts.runs.filter((run) => run.number < number).flatMap((run) => userTexts(run.input))
  const fresh = userTexts(input).filter((text) => !before.includes(text))
  const said: unknown = input.forwardedProps?.said
  if (fresh.length > 0 && said !== fresh.at(-1))
    violate(facts, 'messages', `Request ${number} brings ${fresh.at(-1)} with the options of ${said}.`)
}

function checkResults(facts: Facts, input: RunAgentInput): void {
  const ids = toolResults(input)
  if (new Set(ids).size < ids.length) violate(facts, 'results', `A call has two results: [${ids}].`)
}

export function userTexts({ messages }: RunAgentInput): string[] {
  return messages.flatMap((message) =>
    message.role === 'user' && typeof message.content === 'string' ? [message.content] : [],
  )
}

/** What client tools gave, and those that were stopped, which may be before they began. */
function clientResults({ toolRuns }: Facts, { messages }: RunAgentInput): string[] {
  return messages.flatMap((message) =>
    message.role === 'tool' &&
    (toolRuns.has(message.toolCallId) || message.error?.startsWith('It was interrupted'))
      ? [message.toolCallId]
      : [],
  )
}

export function toolResults({ messages }: RunAgentInput): string[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [message.toolCallId] : []))
}
