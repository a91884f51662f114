import type { MessagePart, UIMessage } from '@countersign/client'
import { type Facts, violate } from './facts.js'
import { hash } from './hash.js'

const rank = {
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
} as const

/** The hash of a message's content. A message is immutable: it is read once. */
const keys = new WeakMap<UIMessage, number>()

export function keyOf(message: UIMessage): number {
  const known = keys.get(message)
  if (known !== undefined) return known
  const key = hash(JSON.stringify(message))
  keys.set(message, key)
  return key
}

/** Compares what is shown with what was shown before. Called with every change the client tells of, and after every step. */
export function createViewCheck(facts: Facts): () => void {
  let shown: readonly UIMessage[] = []
  return () => {
    const { messages, status } = facts.client.getSnapshot()
    noteStart(facts, status)
    if (messages === shown) return
    const before = new Map(shown.map((message) => [message.id, message]))
    shown = messages
    if (facts.held && facts.held.messages !== messages && facts.acting === undefined) {
      if (facts.isLate) facts.held = { messages }
      else violate(facts, 'quiet', 'The messages changed after stop() without an act.')
    }
    facts.isLate = false
    for (const message of messages) compare(facts, before.get(message.id), message)
    for (const [id, { parts }] of before) {
      const isRetold = isRetelling(facts) && parts.every(isUnfinished)
      if (!isRetold && !messages.some((message) => message.id === id))
        violate(facts, 'forward', `The message ${id} is gone.`)
    }
  }
}

/** What asks again takes something back before its run says anything. Where a listener does so, that is heard of after the act. */
function isRetelling({ acting, runs }: Facts): boolean {
  const run = runs.at(-1)
  return asksAgain(acting) || (run?.end === 'open' && !run.acknowledged && asksAgain(run.cause))
}

function asksAgain(act: string | undefined): boolean {
  return act === 'retry'
}

/** What a retry takes back of the run that failed: never a call that may have run. */
function isUnfinished(part: MessagePart): boolean {
  return part.type === 'text' || (part.type === 'tool-call' && part.error?.code === 'incomplete-arguments')
}

function noteStart(facts: Facts, status: string): void {
  const run = facts.runs.at(-1)
  if (run && status === 'streaming' && run.end === 'open') run.acknowledged = true
}

function compare(facts: Facts, before: UIMessage | undefined, after: UIMessage): void {
  if (before === after) return
  if (before && keyOf(before) === keyOf(after))
    violate(facts, 'identity', `The message ${after.id} did not change and is another object.`)
  if (before && !isRetelling(facts) && !textOf(after).startsWith(textOf(before)))
    violate(facts, 'forward', `The text of ${after.id} shrank.`)
  const parts = new Map(before?.parts.map((part) => [idOf(part), part]))
  for (const part of after.parts) if (part.type === 'tool-call') compareCall(facts, parts.get(part.id), part)
}

type CallPart = Extract<MessagePart, { type: 'tool-call' }>

function compareCall(facts: Facts, before: MessagePart | undefined, after: CallPart): void {
  const { approval } = after
  const given = approval && facts.answers.get(approval.id)
  if (approval?.approved !== undefined && approval.approved !== given?.approved)
    violate(
      facts,
      'person',
      `${approval.id} is shown as answered ${approval.approved}; the user said ${given?.approved}.`,
    )
  const isReopened =
    approval !== undefined && after.state === 'approval-requested' && facts.reopening.has(approval.id)
  if (given && given.isWithdrawn !== true && approval.approved === undefined && !isReopened)
    violate(facts, 'consistent', `The answer to ${approval.id} is forgotten.`)
  if (after.state === 'approval-responded' && approval?.approved === undefined)
    violate(facts, 'person', `${after.id} counts as answered without an answer.`)
  if (before?.type !== 'tool-call' || before.state === after.state) return
  if (isReopened) {
    facts.reopening.delete(approval.id)
    if (given) given.isWithdrawn = true
  } else if (rank[before.state] >= rank[after.state])
    violate(facts, 'forward', `${after.id} went from ${before.state} to ${after.state}.`)
}

function idOf(part: MessagePart): string {
  return part.type === 'tool-call' ? part.id : ''
}

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
