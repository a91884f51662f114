import type { ChatClient, Observation, ToolMap } from '@countersign/client'
import { actEntry, printEntry, printState, type TimelineEntry } from '@countersign/devtools'

/** What happened on both sides, in order. */
export interface Timeline {
  readonly entries: readonly TimelineEntry[]
  add(entry: TimelineEntry): void
  /** Records a user action. */
  action(text: string): void
  print(): string
}

export function createTimeline(): Timeline {
  const entries: TimelineEntry[] = []
  return {
    entries,
    add: (entry) => void entries.push(entry),
    action: (text) => void entries.push({ kind: 'action', text }),
    print: () => entries.map(printLine).join('\n'),
  }
}

function printLine(entry: TimelineEntry): string {
  const said = printEntry(entry)
  switch (entry.kind) {
    case 'request':
      return `request ${entry.run}   ${said}`
    case 'event':
      return `  stream ${entry.run}  ${said}`
    case 'closed':
      return `  closed ${entry.run}  ${said}`
    case 'note':
      return `  script ${entry.run}  ${said}`
    case 'action':
      return `action      ${said}`
    case 'state':
      return `    state   ${said}`
    default:
      return entry satisfies never
  }
}

/**
 * Records every change of the chat, and every action of the user on it, whether a test or a component performs it. Returns a
 * function that stops.
 *
 * @example
 * watch(client, server.timeline)
 * render(<Chat client={client} />)
 */
export function watch<Tools extends ToolMap>(client: ChatClient<Tools>, timeline: Timeline): () => void {
  let last = ''
  const note = () => {
    const text = printState(client)
    if (text !== last) timeline.add({ kind: 'state', text })
    last = text
  }
  const leave = [
    client.subscribe(note),
    client.observe((what) => {
      if (what.type !== 'command') return
      note()
      timeline.add(entryOf(what))
      // No notification follows when only the flags of the continuation change.
      queueMicrotask(note)
    }),
  ]
  return () => {
    for (const go of leave) go()
  }
}

/** A message that is only text prints as that text. */
function entryOf(did: Extract<Observation, { readonly type: 'command' }>): TimelineEntry {
  const entry = actEntry(did)
  if (did.name !== 'send') return entry
  const [part, ...more] = did.value.message.parts
  if (part?.type !== 'text' || more.length > 0) return entry
  return { ...entry, kind: 'action', text: `sendMessage ${JSON.stringify(part.text)}` }
}

/** Runs `test`. If it fails, the timeline is appended to the error message. */
export async function explained<T>(timeline: Timeline, test: () => Promise<T>): Promise<T> {
  try {
    return await test()
  } catch (error) {
    if (error instanceof Error) error.message += `\n\nWhat happened:\n${timeline.print()}`
    throw error
  }
}
