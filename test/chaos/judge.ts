import type { LogLine } from '../machines/processes.js'
import type { EndedCall } from './conversation.js'

export interface Verdict {
  /** Approved calls by how they ended. */
  readonly completed: number
  readonly refused: number
  readonly interrupted: number
  readonly lost: number
  /** Executions that the tools' log tells of, begun and ended. */
  readonly starts: number
  readonly ends: number
  /** What is otherwise than promised; empty where all is well. */
  readonly wrong: readonly string[]
}

/** Holds what the clients were told against what the tools did. */
export function judge(calls: number, ended: readonly EndedCall[], log: readonly LogLine[]): Verdict {
  const starts = log.filter(({ what }) => what === 'start')
  const ends = log.filter(({ what }) => what === 'end')
  const count = (end: EndedCall['end']) => ended.filter((call) => call.end === end).length
  const completed = count('completed')
  const known = {
    starts: keysOf(starts),
    ends: keysOf(ends),
    approved: new Set(ended.map((call) => call.approvalId)),
  }
  const wrong = [
    ...doubled(starts.map(({ key }) => key)).map((key) => `the call ${key} ran more than once`),
    ...doubled(starts.map(({ job }) => job)).map((job) => `${job} was done more than once`),
    ...starts
      .filter(({ key }) => !known.approved.has(key))
      .map(({ key }) => `${key} ran, and nobody approved it`),
    ...ended.flatMap((call) => contradictions(call, known)),
    ...(ended.length === calls ? [] : [`${calls} calls were to be approved, ${ended.length} were`]),
    ...(completed >= calls / 2 ? [] : [`only ${completed} of ${calls} calls were completed`]),
  ]
  return {
    completed,
    refused: count('refused'),
    interrupted: count('interrupted'),
    lost: count('lost'),
    starts: starts.length,
    ends: ends.length,
    wrong,
  }
}

function contradictions(
  { job, approvalId, end, detail }: EndedCall,
  known: { readonly starts: ReadonlySet<string>; readonly ends: ReadonlySet<string> },
): string[] {
  switch (end) {
    case 'completed':
      return known.ends.has(approvalId) ? [] : [`${job} counts as completed, and its tool did not end`]
    case 'refused':
      return known.starts.has(approvalId) ? [`${job} was refused (${detail}), and ran`] : []
    case 'interrupted':
      return []
    case 'lost':
      return [`${job} is lost: ${detail}`]
    default:
      return end satisfies never
  }
}

function keysOf(lines: readonly LogLine[]): ReadonlySet<string> {
  return new Set(lines.map(({ key }) => key))
}

function doubled(names: readonly string[]): string[] {
  return [...new Set(names.filter((name, index) => names.indexOf(name) < index))]
}
