import { type AiSdkMessage, fromAiSdkMessages, toAiSdkMessages } from '@countersign/ai-sdk'
import type { UIMessage } from 'ai'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Chunk, continuations, ours, streams, theirs, withoutEmptySteps } from './ai-sdk-streams.js'

/** Every text and thought has ended, and what is `undefined` is not there. */
function plain(messages: readonly (UIMessage | AiSdkMessage)[]): unknown {
  return JSON.parse(JSON.stringify(messages.map(withoutEmptySteps)), (key, value) =>
    key === 'state' && value === 'streaming' ? 'done' : value,
  )
}

const seed = Number(process.env.SEED ?? 20261122)

test('what goes back to an AI SDK route is what its own client would have sent', async () => {
  await fc.assert(
    fc.asyncProperty(streams, async (chunks) => {
      const message = await theirs(chunks)
      const back = toAiSdkMessages(ours(chunks))
      if (back.length > 0 || withoutEmptySteps(message).parts.length > 0)
        expect(plain(back)).toEqual(plain([message]))
    }),
    { seed, numRuns: 100 },
  )
})

test('messages of the AI SDK come back as they were, out of a store of its own', async () => {
  await fc.assert(
    fc.asyncProperty(streams, async (chunks) => {
      const message = withoutEmptySteps(await theirs(chunks))
      if (message.parts.length === 0) return
      const stored = JSON.parse(JSON.stringify([message])) as AiSdkMessage[]
      expect(plain(toAiSdkMessages(fromAiSdkMessages(stored)))).toEqual(plain(stored))
    }),
    { seed, numRuns: 100 },
  )
})

test('a continuation adds to the message that it goes on with, as it does in the SDK', async () => {
  await fc.assert(
    fc.asyncProperty(streams, continuations, async (first, second) => {
      // no two calls, thoughts or sources of one message have the same id
      const more = JSON.parse(
        JSON.stringify(second)
          .replaceAll(/"(c|a|s)(\d+)"/g, '"$1$200"')
          .replaceAll(/"d(\d*)"/g, '"e$1"'),
      ) as Chunk[]
      const before = withoutEmptySteps(await theirs(first))
      if (before.parts.length === 0) return
      const message = withoutEmptySteps(await theirs(more, structuredClone(before)))
      const stored = ours(first)
      const back = toAiSdkMessages(ours(more, JSON.parse(JSON.stringify(stored))))
      expect(plain(back)).toEqual(plain([message]))
    }),
    { seed, numRuns: 100 },
  )
})
