import { isRecord } from '@countersign/core'
import { asList, asRecord, type Fields, parseJson } from '@countersign/server/model-kit'

/**
 * A fetch that preserves what the SDK would lose. The provider may send an error in mid-stream without
 * framing, and the SDK then reports only something incomplete; framed as an event, the error keeps its code.
 * Over the Gemini API the SDK drops `finishMessage`, but it keeps everything in a candidate's content.
 */
export function framedFetch(inner: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const response = await inner(input, init)
    const { body, headers, status, statusText } = response
    if (body === null || !response.ok) return response
    const type = headers.get('content-type') ?? ''
    const about = { headers, status, statusText }
    if (type.includes('text/event-stream')) return new Response(body.pipeThrough(frameEvents()), about)
    return type.includes('application/json')
      ? new Response(withFinishMessage(await response.text()), about)
      : response
  }
}

/** Reads a candidate's `finishMessage` after a {@link framedFetch}. */
export function finishMessageOf(content: unknown): unknown {
  return asRecord(content).finishMessage
}

const boundary = /\r\n\r\n|\n\n|\r\r/

/** Passes complete events on. At the end, the remainder is framed as an event if it is JSON. */
function frameEvents(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  let begun: string[] = []
  let tail = ''
  return new TransformStream({
    transform(bytes, controller) {
      let text = tail + decoder.decode(bytes, { stream: true })
      for (let end = boundary.exec(text); end !== null; end = boundary.exec(text)) {
        const event = begun.join('') + text.slice(0, end.index)
        const data = dataOf(event)
        if (data !== '') controller.enqueue(encoder.encode(withFinishMessage(data) + end[0]))
        begun = []
        text = text.slice(end.index + end[0].length)
      }
      // A boundary may be split across reads, so the last characters are checked again.
      const kept = Math.max(0, text.length - 3)
      begun.push(text.slice(0, kept))
      tail = text.slice(kept)
    },
    flush(controller) {
      const last = begun.join('') + tail + decoder.decode()
      const error = parseJson(last)
      const text = error === undefined ? last : `data: ${JSON.stringify(error)}\n\n`
      if (text !== '') controller.enqueue(encoder.encode(text))
    },
  })
}

/** Removes what the SDK cannot handle from an event: comments and fields other than `data`. Text that is no event stays. */
function dataOf(event: string): string {
  if (/^(?:data:[^\r\n]*|\s*)$/.test(event)) return event
  const lines = event.split(/\r\n|\n|\r/)
  return lines.some((line) => /^\s*[{[]/.test(line) && !line.startsWith('data:'))
    ? event
    : lines.filter((line) => line.startsWith('data:')).join('\n')
}

/** Moves the `finishMessage` of an event, or of a complete response, to where the SDK keeps it. */
function withFinishMessage(text: string): string {
  if (!text.includes('"finishMessage"')) return text
  const [, prefix = '', json = ''] = /^((?:data:)?\s*)([\s\S]*)$/.exec(text) ?? []
  const answer = parseJson(json)
  if (!isRecord(answer)) return text
  return prefix + JSON.stringify({ ...answer, candidates: asList(answer.candidates).map(keepFinishMessage) })
}

function keepFinishMessage(candidate: unknown): Fields {
  const { finishMessage, content } = asRecord(candidate)
  return { ...asRecord(candidate), content: { ...asRecord(content), finishMessage } }
}
