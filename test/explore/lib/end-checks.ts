import { type Facts, isOpen, violate } from './facts.js'
import { isDelivered, toolResults, userTexts } from './request-checks.js'

/** Nothing moves, nothing is asked, and nobody stopped it: an answer that has not gone out has been forgotten. */
export function checkIdle(facts: Facts): void {
  const last = facts.runs.at(-1)
  if (facts.held || last?.end !== 'finished') return
  for (const { id, carried } of facts.answers.values()) {
    if (carried.length === 0)
      violate(facts, 'delivered', `The answer to ${id} stays behind although nothing is in its way.`)
  }
}

/** What must be true once nothing moves any more and the user has answered, retried and resumed whatever there was. */
export function checkEnd(facts: Facts): void {
  const { client, runs, answers, said, log } = facts
  const { status, queue, messages } = client.getSnapshot()
  const { continuationPending, continuationSkipped, openRun } = client.inspect()
  if (runs.some(isOpen) || openRun !== undefined) violate(facts, 'settles', 'A stream is open at the end.')
  if (status !== 'ready') violate(facts, 'settles', `The status ends as ${status}.`)
  if (continuationPending || continuationSkipped)
    violate(
      facts,
      'settles',
      `The flags end as pending=${continuationPending}, skipped=${continuationSkipped}.`,
    )
  for (const { id } of answers.values()) {
    if (!isDelivered(facts, id)) violate(facts, 'delivered', `The answer to ${id} never reached the server.`)
  }
  const outputs = new Set(runs.flatMap(({ input }) => toolResults(input)))
  for (const id of facts.toolRuns.keys()) {
    if (!outputs.has(id))
      violate(facts, 'delivered', `What the client tool of ${id} gave never reached the server.`)
  }
  if (queue.length > 0) violate(facts, 'messages', `${queue.length} messages are still queued.`)
  const read = new Set(runs.flatMap(({ input }) => userTexts(input)))
  for (const { text, refused } of said) {
    if (!refused && !read.has(text))
      violate(facts, 'messages', `The message ${text} never reached the server.`)
  }
  for (const part of messages.flatMap(({ parts }) => parts)) {
    if (part.type === 'tool-call' && part.state === 'executing')
      violate(facts, 'settles', `The client tool of ${part.id} is still at work.`)
  }
  const acts = log.filter(({ kind }) => kind === 'act').length
  const told = log.filter(({ kind }) => kind === 'told').length
  if (told < acts)
    violate(facts, 'told', `${acts - told} of ${acts} acts were never told what became of them.`)
}
