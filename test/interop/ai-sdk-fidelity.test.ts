import { type AiSdkMessage, createAiSdkReader, fromAiSdkMessages, toAiSdkMessages } from '@countersign/ai-sdk'
import { createChatState, type UIMessage as OurMessage, readMessages, step } from '@countersign/core'
import { createEventReader, fullSteps } from '@countersign/core/ag-ui'
import { readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai'
import fc from 'fast-check'
import { expect, test } from 'vitest'

/** A chunk, whatever its type lets it have. */
type Chunk = { readonly type: string; readonly [field: string]: unknown }

/** What the SDK's own client makes of a stream. */
async function theirs(chunks: readonly Chunk[], message?: UIMessage): Promise<UIMessage> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk as UIMessageChunk)
      controller.close()
    },
  })
  let last = message
  const onError = (error: unknown) => {
    throw error
  }
  for await (const next of readUIMessageStream({ stream, onError, ...(message && { message }) })) last = next
  if (!last) throw new Error('There is no message.')
  return last
}

/** What ours makes of it, over the strict check and the machine that every stream passes. */
function ours(chunks: readonly Chunk[], before: readonly OurMessage[] = []): readonly OurMessage[] {
  const state = createChatState({ moreSteps: fullSteps })
  step(state, { type: 'set-messages', messages: before })
  const sent = toAiSdkMessages(before)
  const last = sent.at(-1)
  const run = { threadId: 't', runId: `run-${before.length}` }
  const reader = createAiSdkReader({ ...run, continued: last?.role === 'assistant' ? last : undefined })
  const check = createEventReader(run)
  const warnings: unknown[] = []
  const take = (events: readonly unknown[]) => {
    for (const event of events)
      check.push(event, (checked) => {
        warnings.push(...step(state, checked).filter(({ type }) => type === 'warning'))
      })
  }
  take(reader.start())
  for (const chunk of chunks) take(reader.read(chunk))
  take(reader.end())
  check.end()
  expect(warnings).toEqual([])
  return readMessages(state)
}

/** Every text and thought has ended, and what is `undefined` is not there. */
function plain(messages: readonly (UIMessage | AiSdkMessage)[]): unknown {
  return JSON.parse(JSON.stringify(messages.map(withoutEmptySteps)), (key, value) =>
    key === 'state' && value === 'streaming' ? 'done' : value,
  )
}

const key = fc.constantFrom('openai', 'anthropic')
const providerMetadata = fc.option(
  fc.dictionary(key, fc.dictionary(fc.constantFrom('itemId', 'signature'), fc.string(), { minKeys: 1 }), {
    minKeys: 1,
  }),
  { nil: undefined },
)
const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<unknown>
const args = fc.dictionary(fc.constantFrom('a', 'b', 'c'), json)

const known = (chunk: Chunk): Chunk => JSON.parse(JSON.stringify(chunk))

/** A part of a step, as the chunks of it; `n` makes its ids its own. */
const part = fc.oneof(
  fc
    .tuple(fc.array(fc.string(), { maxLength: 3 }), providerMetadata, fc.boolean())
    .map(([deltas, pm, cites]) => (n: number): Chunk[] => [
      { type: 'text-start', id: `${n}` },
      ...deltas.map((delta) => ({ type: 'text-delta', id: `${n}`, delta })),
      {
        type: 'text-end',
        id: `${n}`,
        providerMetadata: pm,
        ...(cites && { citations: [{ type: 'url', url: 'https://a.example' }] }),
      },
    ]),
  fc
    .tuple(fc.array(fc.string(), { maxLength: 3 }), providerMetadata)
    .map(([deltas, pm]) => (n: number): Chunk[] => [
      { type: 'reasoning-start', id: `${n}` },
      ...deltas.map((delta) => ({ type: 'reasoning-delta', id: `${n}`, delta })),
      { type: 'reasoning-end', id: `${n}`, providerMetadata: pm },
    ]),
  providerMetadata.map((pm) => (n: number): Chunk[] => [
    { type: 'source-url', sourceId: `s${n}`, url: 'https://a.example', title: 'A', providerMetadata: pm },
  ]),
  providerMetadata.map((pm) => (n: number): Chunk[] => [
    {
      type: 'source-document',
      sourceId: `s${n}`,
      mediaType: 'application/pdf',
      title: 'A',
      filename: 'a.pdf',
      providerMetadata: pm,
    },
  ]),
  fc.tuple(fc.constantFrom('file', 'reasoning-file'), providerMetadata).map(([type, pm]) => (): Chunk[] => [
    { type, url: 'data:image/png;base64,AAAA', mediaType: 'image/png', providerMetadata: pm },
  ]),
  fc.constant((): Chunk[] => [
    { type: 'custom', kind: 'openai.thing', providerMetadata: { openai: { a: 1 } } },
  ]),
  fc.tuple(json, fc.boolean()).map(([data, named]) => (n: number): Chunk[] => [
    { type: 'data-weather', data, ...(named && { id: n % 2 === 0 ? 'd' : `d${n}` }) },
  ]),
  fc
    .record({
      input: args,
      streamed: fc.constantFrom('not', 'json', 'other', 'text'),
      dynamic: fc.boolean(),
      ending: fc.constantFrom(
        'output',
        'error',
        'asked',
        'signed',
        'automatic',
        'automatic-no',
        'bad-input',
        'executed',
        'preliminary',
      ),
      pm: providerMetadata,
      rpm: providerMetadata,
    })
    .map(({ input: given, streamed, dynamic, ending, pm, rpm }) => (n: number): Chunk[] => {
      const toolCallId = `c${n}`
      const toolName = 'do-it'
      const input = streamed === 'text' ? 'free text' : given
      const text = JSON.stringify(streamed === 'other' ? { ...given, other: 1 } : input)
      const own = {
        toolCallId,
        toolName,
        ...(dynamic && { dynamic }),
        title: 'Do it',
        ...(ending === 'executed' && { providerExecuted: true }),
      }
      const head: Chunk[] =
        streamed === 'not'
          ? []
          : [
              { type: 'tool-input-start', ...own, ...(streamed === 'text' && { inputEncoding: 'text' }) },
              {
                type: 'tool-input-delta',
                toolCallId,
                inputTextDelta: streamed === 'text' ? 'free ' : text.slice(0, 2),
              },
              {
                type: 'tool-input-delta',
                toolCallId,
                inputTextDelta: streamed === 'text' ? 'text' : text.slice(2),
              },
            ]
      const asked = { type: 'tool-approval-request', approvalId: `a${n}`, toolCallId }
      const answer = { type: 'tool-approval-response', approvalId: `a${n}`, approved: true, reason: 'policy' }
      const available = { type: 'tool-input-available', ...own, input, providerMetadata: pm }
      const output = {
        type: 'tool-output-available',
        toolCallId,
        output: { ok: true },
        providerMetadata: rpm,
      }
      switch (ending) {
        case 'output':
        case 'executed':
          return [...head, available, output]
        case 'preliminary':
          return [...head, available, { ...output, preliminary: true, output: 1 }, output]
        case 'error':
          return [
            ...head,
            available,
            { type: 'tool-output-error', toolCallId, errorText: 'No.', providerMetadata: rpm },
          ]
        case 'asked':
          return [...head, available, asked]
        case 'signed':
          return [
            ...head,
            available,
            {
              ...asked,
              signature: 'sig',
              reason: 'Because.',
              approvalDescriptor: { a: 1 },
              inputSchemaInput: null,
            },
          ]
        case 'automatic':
          return [...head, available, { ...asked, isAutomatic: true }, answer, output]
        case 'automatic-no':
          return [
            ...head,
            available,
            { ...asked, isAutomatic: true },
            { ...answer, approved: false },
            { type: 'tool-output-denied', toolCallId },
          ]
        case 'bad-input':
          // the SDK forgets a title that comes with it
          return [...head, { ...available, title: undefined, type: 'tool-input-error', errorText: 'Bad.' }]
        default:
          return ending satisfies never
      }
    }),
)

const metadata = fc.option(fc.record({ model: fc.string(), usage: fc.record({ total: fc.nat() }) }), {
  nil: undefined,
})

/** A whole stream: steps of parts. `mixed`: their chunks lie between one another, as in streams that were merged. */
const streams = fc
  .record({
    steps: fc.array(fc.array(part, { maxLength: 5 }), { minLength: 1, maxLength: 3 }),
    mixed: fc.boolean(),
    begin: metadata,
    end: metadata,
  })
  .map(({ steps, mixed, begin, end }) => {
    let n = 0
    const body = steps.flatMap((parts) => {
      const all = parts.map((make) => make(++n))
      return [{ type: 'start-step' }, ...(mixed ? interleave(all) : all.flat()), { type: 'finish-step' }]
    })
    return [
      { type: 'start', messageId: 'm1', messageMetadata: begin },
      ...body,
      { type: 'finish', finishReason: 'stop', messageMetadata: end },
    ].map(known)
  })

function interleave<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat()
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

/** Steps in which nothing was said leave nothing to keep. */
function withoutEmptySteps<M extends UIMessage | AiSdkMessage>(message: M): M {
  const parts = message.parts.filter(
    ({ type }, index) =>
      type !== 'step-start' || (message.parts[index + 1]?.type ?? 'step-start') !== 'step-start',
  )
  return { ...message, parts }
}

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
    fc.asyncProperty(streams, streams, async (first, second) => {
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
