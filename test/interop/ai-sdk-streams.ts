import { type AiSdkMessage, createAiSdkReader, toAiSdkMessages } from '@countersign/ai-sdk'
import { createChatState, type UIMessage as OurMessage, readMessages, step } from '@countersign/core'
import { createEventReader, fullSteps } from '@countersign/core/ag-ui'
import { readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai'
import fc from 'fast-check'
import { expect } from 'vitest'

/** A chunk, whatever its type lets it have. */
export type Chunk = { readonly type: string; readonly [field: string]: unknown }

/** What the SDK's own client makes of a stream. */
export async function theirs(chunks: readonly Chunk[], message?: UIMessage): Promise<UIMessage> {
  const last = (await theirMoments(chunks, message)).at(-1) ?? message
  if (!last) throw new Error('There is no message.')
  return last
}

/** The same at each moment that it publishes. */
export async function theirMoments(chunks: readonly Chunk[], message?: UIMessage): Promise<UIMessage[]> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk as UIMessageChunk)
      controller.close()
    },
  })
  const onError = (error: unknown) => {
    throw error
  }
  const shown: UIMessage[] = []
  for await (const next of readUIMessageStream({ stream, onError, ...(message && { message }) }))
    shown.push(structuredClone(next))
  return shown
}

/** What ours makes of it, over the strict check and the machine that every stream passes. */
export function ours(chunks: readonly Chunk[], before: readonly OurMessage[] = []): readonly OurMessage[] {
  return moments(chunks, before).at(-1) ?? []
}

/** The same after each chunk, and at the end. */
export function moments(
  chunks: readonly Chunk[],
  before: readonly OurMessage[] = [],
): readonly (readonly OurMessage[])[] {
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
    return readMessages(state)
  }
  take(reader.start())
  const shown = [...chunks.map((chunk) => take(reader.read(chunk))), take(reader.end())]
  check.end()
  expect(warnings).toEqual([])
  return shown
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

/** A whole stream: steps of parts. `mixed`: their chunks lie between one another, as in streams that were merged. `head`: what comes before the first. */
const streamsWith = (head: fc.Arbitrary<((n: number) => Chunk[])[]>) =>
  fc
    .record({
      steps: fc.array(
        fc.record({
          parts: fc.array(part, { maxLength: 5 }),
          /** What the server took back before them. */
          reset: fc.option(fc.array(part, { maxLength: 3 }), { nil: undefined }),
        }),
        { minLength: 1, maxLength: 3 },
      ),
      mixed: fc.boolean(),
      head,
      begin: metadata,
      end: metadata,
    })
    .map(({ steps, mixed, head, begin, end }) => {
      let n = 0
      const chunksOf = (parts: readonly ((n: number) => Chunk[])[]) => {
        const all = parts.map((make) => make(++n))
        return mixed ? interleave(all) : all.flat()
      }
      const first = chunksOf(head)
      const body = steps.flatMap(({ parts, reset }) => [
        { type: 'start-step' },
        ...(reset ? [...chunksOf(reset), { type: 'reset-step' }] : []),
        ...chunksOf(parts),
        { type: 'finish-step' },
      ])
      return [
        { type: 'start', messageId: 'm1', messageMetadata: begin },
        ...first,
        ...body,
        { type: 'finish', finishReason: 'stop', messageMetadata: end },
      ].map(known)
    })

export const streams = streamsWith(fc.array(part, { maxLength: 2 }))

/** Streams that go on with a message. */
export const continuations = streamsWith(fc.constant([]))

function interleave<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat()
}

/** Steps in which nothing was said leave nothing to keep. */
export function withoutEmptySteps<M extends UIMessage | AiSdkMessage>(message: M): M {
  const parts = message.parts.filter(
    ({ type }, index) =>
      type !== 'step-start' || (message.parts[index + 1]?.type ?? 'step-start') !== 'step-start',
  )
  return { ...message, parts }
}
