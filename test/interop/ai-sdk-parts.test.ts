import { type AiSdkMessage, fromAiSdkMessages, toAiSdkMessages } from '@countersign/ai-sdk'
import { turnsOf } from '@countersign/client'
import type { UIMessage } from 'ai'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type Chunk,
  moments,
  ours,
  streams,
  theirMoments,
  theirs,
  withoutEmptySteps,
} from './ai-sdk-streams.js'

const text = (id: string, ...deltas: string[]): Chunk[] => [
  { type: 'text-start', id },
  ...deltas.map((delta) => ({ type: 'text-delta', id, delta })),
  { type: 'text-end', id },
]
const data = (value: unknown, id?: string): Chunk => ({
  type: 'data-weather',
  data: value,
  ...(id !== undefined && { id }),
})
const file: Chunk = { type: 'file', url: 'data:image/png;base64,AAAA', mediaType: 'image/png' }
const call = (toolCallId: string): Chunk => ({
  type: 'tool-input-available',
  toolCallId,
  toolName: 'find',
  input: { q: 1 },
})
const output = (toolCallId: string): Chunk => ({ type: 'tool-output-available', toolCallId, output: [1, 2] })
const reset: Chunk = { type: 'reset-step' }

/** What each kind of stream is about, as the chunks of its steps. */
const told: Readonly<Record<string, readonly (readonly Chunk[])[]>> = {
  'a text': [text('1', 'A', 'B')],
  'two texts': [[...text('1', 'A'), ...text('2', 'B')]],
  'data without an id': [[data(1), data(1)]],
  'data that is replaced in place': [[data(1, 'd'), ...text('1', 'A'), data(2, 'd')]],
  'data that a later step replaces': [
    [data(1, 'd'), ...text('1', 'A')],
    [data(2, 'd'), data(3, 'e')],
  ],
  'data of two names with one id': [[data(1, 'd'), { type: 'data-news', id: 'd', data: 2 }]],
  'data between texts': [[...text('1', 'A'), data({ a: 1 }, 'd'), ...text('2', 'B'), data({ a: 2 }, 'd')]],
  'data that is a list': [[data([1, [2]], 'd'), data([], 'e'), data([{ value: 1 }])]],
  'data that is a text, null or a number': [[data('a'), data(null), data(0), data(false)]],
  'data with a member of the name value': [[data({ value: 1 }), data({ value: { value: [] } })]],
  'a file': [[file]],
  'files between texts': [[...text('1', 'A'), file, ...text('2', 'B'), file]],
  'a file of the reasoning': [[{ ...file, type: 'reasoning-file' }, ...text('1', 'A')]],
  'calls and their outputs': [[call('c1'), output('c1')], text('1', 'A')],
  'a text that goes on after a call': [
    [
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'A' },
      call('c1'),
      { type: 'text-delta', id: '1', delta: 'B' },
      { type: 'text-end', id: '1' },
      output('c1'),
    ],
  ],
  'three steps': [text('1', 'A'), text('1', 'B'), text('1', 'C')],
  'a step without anything': [text('1', 'A'), [], text('1', 'C')],
  'a step that is taken back': [[...text('1', 'A'), reset, ...text('1', 'B')]],
  'a step that is taken back twice': [
    [...text('1', 'A'), reset, ...text('1', 'B'), reset, ...text('1', 'C')],
  ],
  'a step that is taken back at its end': [text('1', 'A'), [...text('1', 'B'), reset]],
  'nothing that is taken back': [[reset, ...text('1', 'A')], [reset]],
  'data that is taken back': [[data(1, 'd'), data(1), reset, ...text('1', 'A')]],
  'data that is taken back and comes again': [[data(1, 'd'), reset, ...text('1', 'A'), data(2, 'd')]],
  'data of an earlier step, before one that is taken back': [
    [data(1, 'd')],
    [data(2, 'd'), ...text('1', 'A'), reset, data(3, 'd')],
  ],
  'a file that is taken back': [[file, ...text('1', 'A'), reset, ...text('1', 'B'), file]],
  'calls that are taken back': [[call('c1'), output('c1'), call('c2'), reset, call('c1'), output('c1')]],
  'a call that is taken back while its arguments stream': [
    [
      { type: 'tool-input-start', toolCallId: 'c1', toolName: 'find' },
      { type: 'tool-input-delta', toolCallId: 'c1', inputTextDelta: '{"q"' },
      reset,
      ...text('1', 'A'),
    ],
  ],
  'a text that is taken back while it streams': [
    [{ type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'A' }, reset, ...text('1', 'B')],
  ],
  'a thought that is taken back while it streams': [
    [
      { type: 'reasoning-start', id: '1' },
      { type: 'reasoning-delta', id: '1', delta: 'A' },
      reset,
      ...text('1', 'B'),
    ],
  ],
  'a source that is taken back and comes again': [
    [
      { type: 'source-url', sourceId: 's', url: 'https://a.example' },
      reset,
      { type: 'source-url', sourceId: 's', url: 'https://a.example' },
      ...text('1', 'A'),
    ],
  ],
  'an approval request that is taken back': [
    [
      call('c1'),
      { type: 'tool-approval-request', approvalId: 'a1', toolCallId: 'c1' },
      reset,
      ...text('1', 'A'),
    ],
  ],
  'metadata, and a step that is taken back': [
    [{ type: 'message-metadata', messageMetadata: { a: 1 } }, ...text('1', 'A'), reset],
  ],
  'everything at once': [
    [...text('1', 'A'), data([1], 'd'), file, call('c1'), output('c1'), ...text('2', 'B')],
    [...text('1', 'C'), data({}, 'd'), reset, data([3], 'd'), ...text('1', 'D'), file],
    text('1', 'E'),
  ],
}

const whole = (steps: readonly (readonly Chunk[])[]): Chunk[] => [
  { type: 'start', messageId: 'm1' },
  ...steps.flatMap((step) => [{ type: 'start-step' }, ...step, { type: 'finish-step' }]),
  { type: 'finish', finishReason: 'stop' },
]

const start: Chunk = { type: 'start', messageId: 'm1' }
const beginStep: Chunk = { type: 'start-step' }
const [open, more, end] = [
  { type: 'start', id: '0' },
  { type: 'delta', id: '0', delta: 'Z' },
  { type: 'end', id: '0' },
]
const half = (kind: string, { type, ...chunk }: { readonly type: string }): Chunk => ({
  type: `${kind}-${type}`,
  ...chunk,
})
const source: Chunk = { type: 'source-url', sourceId: 's', url: 'https://a.example' }

/** What a route sends that writes parts of its own, or merges the streams of two models. */
const merged: Readonly<Record<string, readonly Chunk[]>> = {
  'a text before the first step': [start, ...text('0', 'Z'), beginStep, ...text('1', 'A')],
  'a source and data before the first step': [start, source, data(1), beginStep, data(2), ...text('1', 'A')],
  'a call before the first step': [start, call('c1'), output('c1'), beginStep, ...text('1', 'A')],
  'a first step that is taken back, behind a text': [
    ...[start, ...text('0', 'Z'), beginStep, ...text('1', 'A'), reset, ...text('1', 'B')],
  ],
  ...Object.fromEntries(
    ['text', 'reasoning'].flatMap((kind) => [
      [
        `a ${kind} that goes on in the next step`,
        [
          ...[start, beginStep, half(kind, open), half(kind, more), { type: 'finish-step' }, beginStep],
          ...[
            ...text('1', 'A'),
            half(kind, more),
            call('c1'),
            output('c1'),
            half(kind, end),
            ...text('2', 'B'),
          ],
        ],
      ],
      [
        `a ${kind} that begins before the first step and ends in the second`,
        [
          ...[start, half(kind, open), beginStep, ...text('1', 'A'), half(kind, more), beginStep],
          ...[...text('1', 'B'), half(kind, more), half(kind, end)],
        ],
      ],
    ]),
  ),
}

const all = [
  ...Object.entries(told).map(([name, steps]) => [name, whole(steps)] as const),
  ...Object.entries(merged).map(([name, chunks]) => [name, [...chunks, { type: 'finish' }]] as const),
]

test('there are at least 30 streams', () => {
  expect(all.length).toBeGreaterThanOrEqual(30)
})

test.each(all)('H26 %s: the parts are those of the client of the AI SDK', async (_, chunks) => {
  const mine = ours(chunks)
  const back = toAiSdkMessages(mine)
  expect(shape(back)).toEqual(shape([await theirs(chunks)]))
  // One bubble, whatever it consists of. From a store it is the same, if there is anything in it.
  expect(turnsOf(mine)).toHaveLength(1)
  const stored = back.filter(({ parts }) => parts.some(({ type }) => type !== 'step-start'))
  expect(shape(toAiSdkMessages(fromAiSdkMessages(stored)))).toEqual(shape(stored))
})

test.each(all)(
  'H26 %s: its texts are never other than those of the AI SDK, while it streams',
  async (_, chunks) => {
    const theirTexts = ['', ...(await theirMoments(chunks)).map(textOf)]
    for (const moment of moments(chunks)) expect(theirTexts).toContain(textOf(toAiSdkMessages(moment)[0]))
  },
)

test('H26 any stream of texts, thoughts, sources, files, data, calls, and steps that are taken back', async () => {
  await fc.assert(
    fc.asyncProperty(streams, async (chunks) => {
      const message = await theirs(chunks)
      const back = toAiSdkMessages(ours(chunks))
      if (back.length > 0 || withoutEmptySteps(message).parts.length > 0)
        expect(shape(back)).toEqual(shape([message]))
      expect(turnsOf(ours(chunks)).length).toBeLessThanOrEqual(1)
    }),
    { seed: 20261125, numRuns: 60 },
  )
})

/** The parts in order. Every text has ended, and what is `undefined` is not there. */
function shape(messages: readonly (UIMessage | AiSdkMessage)[]): unknown {
  return JSON.parse(JSON.stringify(messages.map((message) => withoutEmptySteps(message))), (key, value) =>
    key === 'state' && value === 'streaming' ? 'done' : value,
  )
}

function textOf(message: UIMessage | AiSdkMessage | undefined): string {
  return message?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? ''
}
