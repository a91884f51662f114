import { frame } from '../scenarios.mjs'

const encoder = new TextEncoder()

/** The response of an AG-UI server over SSE: the head names the run of the request, then come the reads as they were cut. */
export function respond({ threadId, runId }, reads) {
  const head = encoder.encode(frame({ type: 'RUN_STARTED', threadId, runId }))
  const tail = encoder.encode(frame({ type: 'RUN_FINISHED', threadId, runId }))
  return new Response(bodyOf([head, ...reads, tail]), { headers: { 'content-type': 'text/event-stream' } })
}

export function bodyOf(reads) {
  let next = 0
  return new ReadableStream({
    pull(controller) {
      if (next < reads.length) controller.enqueue(reads[next++])
      else controller.close()
    },
  })
}
