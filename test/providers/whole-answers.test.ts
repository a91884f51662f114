import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { factsOf } from './facts.mjs'
import { protocols } from './protocols.mjs'
import { casesOf, listen, ownFixtures } from './replay.mjs'
import { serve } from './serve.js'

/**
 * Each stream of the Responses API ends with the whole answer. Served as one, to an adapter that does not stream, it says the same but for
 * the number of pieces.
 */

const asked = {
  messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hello' }] }],
  tools: [],
}

for (const entry of casesOf(ownFixtures)) {
  if (entry.protocol !== 'openai-responses' || !entry.stream) continue
  const body = readFileSync(join(ownFixtures, entry.file), 'utf8')
  const last = body
    .split('\n')
    .filter((line) => line.startsWith('data: ') && /"type":\s*"response\.(completed|incomplete)"/.test(line))
    .at(-1)
  const response: unknown = last && JSON.parse(last.slice('data: '.length)).response
  if (!response) continue

  test(`${entry.id} says the same as a whole answer`, async () => {
    const protocol = protocols['openai-responses']
    if (protocol === undefined) throw new Error('there is no adapter')
    const server = await serve({
      body: Buffer.from(JSON.stringify(response)),
      contentType: 'application/json',
    })
    const { events, error } = await listen(protocol.model(server.origin, { stream: false }), asked)
    const { toolCalls, finish: _finish, ...facts } = factsOf(events, error, protocol)
    const { toolCalls: streamed, ...expected } = JSON.parse(
      readFileSync(join(ownFixtures, entry.expect), 'utf8'),
    )
    const { protocol: _, stream: __, wire: ___, notes: ____, ...said } = expected
    expect(facts).toEqual(said)
    const inOne = streamed.map((call: object) => ({ ...call, argumentDeltas: 1 }))
    expect(toolCalls).toEqual(inOne)
  })
}
