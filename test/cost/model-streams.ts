import { openai } from '@countersign/openai'
import { times, type Value } from './shapes.js'
import { bodyOf } from './streams.js'

/** What a server of a model sends, whose protocol has no limit on how many pieces it comes in. */
interface ModelStream {
  readonly name: string
  readonly deltas: (bytes: number) => readonly Value[]
}

const piece = (text: string): Value => ({
  tool_calls: [{ index: 0, function: { name: 'x', arguments: text } }],
})
/** Pieces of arguments, each with the name of the call and none with an id. About half of the bytes are theirs. */
const pieces = (bytes: number, text: string): readonly Value[] =>
  times(bytes / 190, () => piece(text.repeat(95 / JSON.stringify(text).length)))
/** Very many details of a thought, of `size` bytes each. */
const details = (bytes: number, size: number, detail: (index: number) => Value): readonly Value[] =>
  times(bytes / (200 * size), (chunk) => ({
    reasoning_details: times(200, (index) => detail(200 * chunk + index)),
  }))

export const modelStreams: readonly ModelStream[] = [
  {
    name: 'arguments in pieces that repeat the name',
    deltas: (bytes) => [piece('{"a":['), ...pieces(bytes, '{},'), piece('1]}')],
  },
  {
    name: 'arguments in pieces that repeat the name, and each could be the last one',
    deltas: (bytes) => [piece('{"a":["'), ...pieces(bytes, '","}'), piece('"]}')],
  },
  {
    name: 'arguments that are no JSON, and go on behind their end in pieces that repeat the name',
    deltas: (bytes) => [piece(`{"a":[${'{},'.repeat(bytes / 6)}}`), ...pieces(bytes / 4, ' ')],
  },
  {
    name: 'details of a thought, each with a number of its own',
    deltas: (bytes) => details(bytes, 15, (index) => ({ index })),
  },
  {
    name: 'details of a thought without numbers',
    deltas: (bytes) => details(bytes, 3, () => ({})),
  },
  {
    name: 'one detail of a thought in pieces, each with a field of its own',
    deltas: (bytes) => details(bytes, 24, (index) => ({ index: 0, [`key${index}`]: 1 })),
  },
]

const utf8 = new TextEncoder()

export function chunksOf(deltas: readonly Value[]): readonly Value[] {
  return [...deltas.map((delta) => ({ choices: [{ delta }] })), { choices: [{ finish_reason: 'stop' }] }]
}

export function sentBy(chunks: readonly Value[]): Uint8Array {
  return utf8.encode(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''))
}

export function readByModel(stream: Uint8Array): () => Promise<void> {
  const fetch = async () => new Response(bodyOf(stream), { headers: { 'content-type': 'text/event-stream' } })
  const about = { model: 'm', provider: 'local', apiKey: 'none', baseURL: 'http://localhost/v1' }
  const model = openai({ api: 'chat', ...about, options: { fetch } })
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'go' }] }] as const
  const { signal } = new AbortController()
  return async () => {
    let last: string | undefined
    for await (const { type } of model.stream({ messages, tools: [] }, { signal })) last = type
    // A stream that is refused costs nothing.
    if (last !== 'finish') throw new Error(`The stream ended with ${last}.`)
  }
}
