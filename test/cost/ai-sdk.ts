import type { StoredMessage } from '@countersign/server'
import { marks, text, times, type Value } from './shapes.js'

interface AiSdkAsked {
  readonly name: string
  readonly body: (bytes: number) => Value
  /** What its thread has stored, by the same size: only then the agent has threads. */
  readonly stored?: (bytes: number) => readonly StoredMessage[]
}

const chat = (messages: readonly Value[]): Value => ({ id: 'thread', messages })
const assistant = (parts: readonly Value[]): Value => chat([{ id: 'a', role: 'assistant', parts }])
const many = (bytes: number, part: (index: number) => Value): Value => {
  const count = bytes / (JSON.stringify(part(1000)).length + 1)
  return assistant(times(count, part))
}
const wide = (bytes: number): Value => Object.fromEntries(times(bytes / 14, (index) => [`key${index}`, 1]))
const toolPart = (index: number, more: Value): Value => ({
  type: 'tool-send',
  toolCallId: `c${index}`,
  input: {},
  ...more,
})

const said = (id: string, more: Value = {}): Value => ({ id, role: 'user', content: 'x', ...more })
const chain = (messages: readonly Value[]): readonly StoredMessage[] =>
  messages.map((message, index) => ({
    id: String(message.id),
    parent: index === 0 ? null : String(messages[index - 1]?.id),
    message: JSON.stringify(message),
  }))
const news = (bytes: number): Value =>
  chat(
    times(Math.min(19_000, bytes / 70), (index) => ({
      id: `new${index}`,
      role: 'user',
      parts: [{ type: 'text', text: 'x' }],
    })),
  )

/** What meets a stored conversation: both grow. */
const overStored: readonly AiSdkAsked[] = [
  {
    name: 'very many new messages for a conversation of very many',
    body: news,
    stored: (bytes) => chain(times(Math.min(19_000, bytes / 70), (index) => said(`old${index}`))),
  },
  {
    name: 'very many new messages for one that says that it has very many versions',
    body: news,
    stored: (bytes) => {
      const versions = times(bytes / 4, (index) => `v${index}`)
      return chain([said('old', { metadata: { countersign: { versions } } })])
    },
  },
  {
    name: 'a reply of very many steps that are not stored',
    body: (bytes) =>
      chat([
        { id: 'u', role: 'user', parts: [{ type: 'text', text: 'x' }] },
        {
          id: 'reply_u',
          role: 'assistant',
          parts: times(Math.min(19_000, bytes / 50), (index) => [
            { type: 'step-start' },
            { type: 'text', text: `y${index}` },
          ]).flat(),
        },
      ]),
    stored: (bytes) =>
      chain([
        said('u'),
        ...times(Math.min(19_000, bytes / 70), (index) => ({
          id: `a${index}`,
          role: 'assistant',
          content: 'x',
        })),
      ]),
  },
  {
    name: 'a reply of very many thoughts that a page lacks',
    body: (bytes) =>
      chat([
        { id: 'u', role: 'user', parts: [{ type: 'text', text: text(bytes) }] },
        { id: 'reply_u', role: 'assistant', parts: [] },
      ]),
    stored: (bytes) =>
      chain([
        said('u'),
        ...times(Math.min(19_000, bytes / 70), (index) => ({
          id: `r${index}`,
          role: 'reasoning',
          content: 'x',
        })),
        { id: 'a', role: 'assistant', content: 'x' },
      ]),
  },
]

/** Requests of an AI SDK client. A part has its fields by its type. */
export const aiSdkRequests: readonly AiSdkAsked[] = [
  ...overStored,
  { name: 'a long text', body: (bytes) => assistant([{ type: 'text', text: text(bytes) }]) },
  { name: 'a text of marks', body: (bytes) => assistant([{ type: 'text', text: marks(bytes) }]) },
  {
    name: 'very many messages',
    body: (bytes) =>
      chat(
        times(Math.min(19_000, bytes / 80), (index) => ({
          id: `m${index}`,
          role: 'user',
          parts: [{ type: 'text', text: text(bytes / 19_000 - 80) }],
        })),
      ),
  },
  {
    name: 'very many texts',
    body: (bytes) => many(bytes, () => ({ type: 'text', text: 'x', state: 'done', citations: [] })),
  },
  {
    name: 'very many thoughts',
    body: (bytes) => many(bytes, (index) => ({ type: 'reasoning', id: `r${index}`, text: 'x' })),
  },
  {
    name: 'very many files',
    body: (bytes) =>
      many(bytes, () => ({
        type: 'file',
        mediaType: 'image/png',
        url: 'data:image/png;base64,eA==',
        filename: 'x',
        providerReference: {},
      })),
  },
  {
    name: 'very many sources',
    body: (bytes) =>
      many(bytes, (index) => ({ type: 'source-url', sourceId: `s${index}`, url: 'x', title: 'x' })),
  },
  { name: 'very many steps', body: (bytes) => many(bytes, () => ({ type: 'step-start' })) },
  {
    name: 'very many parts of the application',
    body: (bytes) => many(bytes, () => ({ type: 'data-x', data: {} })),
  },
  {
    name: 'metadata of very many members',
    body: (bytes) =>
      chat([
        {
          id: 'a',
          role: 'assistant',
          metadata: wide(bytes / 2),
          parts: [{ type: 'text', text: 'x', providerMetadata: wide(bytes / 2) }],
        },
      ]),
  },
  {
    name: 'metadata of very many members on a message of very many steps',
    body: (bytes) =>
      chat([
        {
          id: 'a',
          role: 'assistant',
          metadata: wide(bytes / 2),
          parts: times(bytes / 100, () => [{ type: 'step-start' }, { type: 'text', text: 'x' }]).flat(),
        },
      ]),
  },
  {
    name: 'a call with very many members everywhere',
    body: (bytes) => {
      const more = {
        title: text(bytes / 8),
        toolMetadata: wide(bytes / 8),
        inputEncoding: 'x',
        rawInput: wide(bytes / 8),
        callProviderMetadata: wide(bytes / 8),
        resultProviderMetadata: wide(bytes / 8),
        input: wide(bytes / 8),
        output: wide(bytes / 8),
      }
      return assistant([toolPart(1, { state: 'output-available', ...more })])
    },
  },
  ...[
    'input-available',
    'approval-requested',
    'approval-responded',
    'output-available',
    'output-error',
    'output-denied',
  ].map((state) => ({
    name: `very many calls, ${state}`,
    body: (bytes: number) => {
      const part = (index: number) =>
        toolPart(index, {
          state,
          ...(state.startsWith('approval') && {
            approval: { id: `a${index}`, approved: true, signature: 'x', reason: 'x' },
          }),
          ...(state === 'output-available' && { output: 1, preliminary: true }),
          ...(state === 'output-error' && { errorText: 'x' }),
        })
      return chat(
        times(bytes / 30_000, (turn) => ({
          id: `a${turn}`,
          role: 'assistant',
          parts: times(250, (nth) => part(turn * 250 + nth)),
        })),
      )
    },
  })),
]
