import type { Persistence } from '@countersign/client'
import {
  createChatState,
  isCountersignError,
  readRecord,
  type ThreadRecord,
  type UIMessage,
} from '@countersign/core'

export interface PersistenceUnderTest {
  readonly persistence: Persistence
  close?(): Promise<void> | void
}

/** Creates an empty persistence. */
export type CreatePersistence = () => Promise<PersistenceUnderTest> | PersistenceUnderTest

/** Adds direct access to the storage. It is used only for threads whose ids are short and consist of letters. */
export interface RecordStoreUnderTest extends PersistenceUnderTest {
  /** The stored text of a thread. */
  stored(threadId: string): Promise<string | undefined>
  /** Stores a text for a thread. */
  plant(threadId: string, text: string): Promise<void>
  /** What was moved aside for a thread, oldest first. */
  aside(threadId: string): Promise<readonly string[]>
  /** Fills the storage, leaving space for at most another 50,000 characters. */
  fill(): Promise<void>
}

export type Migrate = (old: unknown, version: number) => ThreadRecord | undefined

/** Creates an empty record store. */
export type CreateRecordStore = (options: {
  readonly migrate: Migrate | undefined
}) => Promise<RecordStoreUnderTest> | RecordStoreUnderTest

export type Spec<Made> = (sentence: string, run: (made: Made) => Promise<void>) => void

/** The record of an empty conversation. */
export const silence: ThreadRecord = readRecord(createChatState())

/** A record of one message. */
export function saying(text: string): ThreadRecord {
  return { ...silence, messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }] }
}

const awkward = 'naïve 👩🏽‍⚖️ \u0000\u2028\ud800 "\\" </script> e\u0301 عربى'

const conversation: readonly UIMessage[] = [
  {
    id: 'm1',
    role: 'user',
    createdAt: 1_767_225_600_000,
    parts: [
      { type: 'text', text: awkward },
      {
        type: 'file',
        media: 'image',
        source: { type: 'data', value: 'iVBORw0KGgo=', mimeType: 'image/png' },
      },
    ],
  },
  {
    id: 'm2',
    role: 'assistant',
    metadata: { countersign: { order: ['r1', 'text', 'call_1'] } },
    parts: [
      { type: 'reasoning', id: 'r1', text: '', encryptedValue: 'b3BhcXVl' },
      { type: 'source', id: 's1', url: 'https://example.com/?q=1', title: 'A page' },
      { type: 'data', name: 'chart', data: { rows: [[1, 2.5e300, -3], []], none: null } },
      {
        type: 'tool-call',
        id: 'call_1',
        name: 'remove',
        arguments: '{"path":"a","__proto__":{"polluted":true}}',
        input: JSON.parse('{"path":"a","__proto__":{"polluted":true}}'),
        state: 'approval-responded',
        approval: {
          id: 'approval_1',
          needsApproval: true,
          options: ['deny', 'once', 'session'],
          allowEdits: ['path'],
          message: 'Deletes a file.',
          expiresAt: '2027-01-01T00:00:00.000Z',
          token: 'cs1.k.p.m',
          approved: true,
          scope: 'once',
          input: { path: 'b' },
          delivery: 'unknown',
        },
      },
      {
        type: 'tool-call',
        id: 'call_2',
        name: 'where',
        arguments: '{}',
        input: {},
        state: 'complete',
        output: { latitude: 48.2, place: awkward },
      },
      {
        type: 'tool-call',
        id: 'call_3',
        name: 'write',
        arguments: '{',
        state: 'error',
        error: { message: 'No', code: 'EPERM' },
      },
    ],
  },
]

/** A record with every kind of part, an answer in transit, pending outputs, calls and messages, and text that is easily corrupted. */
export const rich: ThreadRecord = {
  ...silence,
  messages: conversation,
  unsentOutputs: ['call_2'],
  ready: [{ id: 'call_4', input: { path: 'c' } }],
  interrupts: [
    {
      interrupt: { id: 'i1', reason: 'input_required' },
      response: { payload: { name: awkward } },
      sent: false,
    },
  ],
  queue: [
    {
      id: 'q1',
      message: { id: 'm3', role: 'user', parts: [{ type: 'text', text: 'And then?' }] },
      visible: ['approval_1'],
    },
  ],
  state: JSON.parse('{"__proto__":{"a":1},"constructor":[true,false,null],"":{"deep":{"deeper":[[[]]]}}}'),
}

/** The code of the CountersignError that an act rejects with; otherwise a note that it did not reject, or with what. */
export async function codeOf(act: Promise<unknown>): Promise<string> {
  try {
    await act
    return 'no error'
  } catch (error) {
    return isCountersignError(error) ? error.code : `another error: ${String(error)}`
  }
}
