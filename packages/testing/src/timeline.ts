import type { ChatActions, ChatClient, ToolMap } from '@countersign/client'
import { printEntry, printState, type TimelineEntry } from '@countersign/devtools'

/** What happened on both sides, in order. */
export interface Timeline {
  readonly entries: readonly TimelineEntry[]
  add(entry: TimelineEntry): void
  /** Records a user action. */
  act(text: string): void
  print(): string
}

export function createTimeline(): Timeline {
  const entries: TimelineEntry[] = []
  return {
    entries,
    add: (entry) => void entries.push(entry),
    act: (text) => void entries.push({ kind: 'act', text }),
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
    case 'act':
      return `act         ${said}`
    case 'state':
      return `    state   ${said}`
    default:
      return entry satisfies never
  }
}

/**
 * Records every change of the chat and every user action. Act through the returned actions, or through the
 * client for actions that need not be recorded.
 */
export function watch<Tools extends ToolMap>(
  client: ChatClient<Tools>,
  timeline: Timeline,
): ChatActions<Tools> {
  let last = ''
  const note = () => {
    const text = printState(client)
    if (text !== last) timeline.add({ kind: 'state', text })
    last = text
  }
  client.subscribe(note)
  const noted = Object.entries(client.actions).map(([name, action]) => [
    name,
    (...args: readonly unknown[]) => {
      timeline.act([name, ...args.map((arg) => JSON.stringify(arg))].join(' '))
      const result: unknown = Reflect.apply(action, undefined, args)
      note()
      return result
    },
  ])
  return Object.fromEntries(noted)
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
