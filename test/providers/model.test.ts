import { describeModel, type ModelStory } from '@countersign/testing/suites'
import { expect, onTestFinished, test } from 'vitest'
import { adapters, type Protocol } from './protocols.mjs'
import { type Recording, serveRecordings } from './server.mjs'

/** The model suite, for every adapter over the real SDK, streaming and not. */
for (const protocol of adapters) {
  for (const stream of [true, false]) {
    describeModel(
      `${protocol.name}, ${stream ? 'streaming' : 'whole'}`,
      async (story) => {
        const recording = told(protocol, story, stream)
        if (recording === undefined) return undefined
        const server = await serveRecordings([recording])
        onTestFinished(server.close)
        // a whole answer that ends early is not JSON: only a stream can break off and have said something
        return protocol.model(server.origin, { stream: stream || story === 'cut' || story === 'endless' })
      },
      { test, expect },
    )
  }
}

function told({ say, asks }: Protocol, story: ModelStory, stream: boolean): Recording | undefined {
  const search = { id: 'mcp_1', name: 'search', arguments: '{"q":"x"}' }
  switch (story) {
    case 'text':
      return say({ text: 'Hello, world.', stream })
    case 'calls':
      return say({
        calls: [
          { id: 'call_1', name: 'get_weather', arguments: '{"city":"Oslo"}' },
          { id: 'call_2', name: 'get_time', arguments: '{}' },
        ],
        stream,
      })
    case 'endless':
      return { body: endlessly(upTo('and ', say({ text: 'and so on' }))) }
    case 'cut':
      return { body: Buffer.from(upTo('Hello,', say({ text: 'Hello, world.' }))) }
    case 'asks':
      return asks ? say({ calls: [{ ...search, asks: 'mcpr_1' }], stream }) : undefined
    case 'runs':
      return asks ? say({ calls: [{ ...search, asked: 'mcpr_1', output: 'found 3' }], stream }) : undefined
    default:
      return story satisfies never
  }
}

/** A stream up to and with the event that says this. */
function upTo(said: string, { body }: Recording): string {
  if (!Buffer.isBuffer(body)) throw new Error('only a body that is there can be cut')
  const text = body.toString()
  return text.slice(0, text.indexOf('\n\n', text.indexOf(said)) + 2)
}

/** Its last event, for ever. */
async function* endlessly(begun: string) {
  yield begun
  const again = begun.slice(begun.lastIndexOf('\n\n', begun.length - 3) + 2)
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    yield again
  }
}
