import { type AGUIEvent, getCountersignMetadata, type RunAgentInput } from '@countersign/core'
import { readPage } from '../conversation/continued-branch.js'
import { sha256 } from '../encoding/bytes.js'

type Request = Partial<Pick<RunAgentInput, 'resume' | 'forwardedProps'>>

/**
 * What a request asks of its run besides new messages: answers, or a reply anew. It stands in the first event of the run, and tells a request
 * that is repeated from another one under the same `runId`. `undefined`: nothing.
 */
export async function askedBy({ resume = [], forwardedProps }: Request): Promise<string | undefined> {
  const { regenerate } = readPage(forwardedProps)
  if (resume.length === 0 && regenerate === undefined) return undefined
  const answers = resume.map(({ interruptId, status, payload }) => [interruptId, status, payload])
  return sha256(JSON.stringify([answers, regenerate]))
}

/** Whether the run with this first event was asked for that. */
export function wasAsked(started: AGUIEvent, asked: string): boolean {
  return getCountersignMetadata(started.metadata).asked === asked
}
