const metadata = { k: [null, { deep: 1 }] }
const base = { timestamp: 5, rawEvent: { any: null }, metadata }
const own = { ...base, subagentRunId: 's1' }
const source = { type: 'file', value: 'f', provider: 'p', mimeType: 'a/b' }
const parts = [
  { type: 'text', id: 'p1', text: 't', metadata: 1 },
  { type: 'image', id: 'p2', source: { type: 'url', value: 'u', mimeType: 'a/b' }, metadata },
  { type: 'audio', source: { type: 'data', value: 'AA==', mimeType: 'a/b' } },
  { type: 'video', source },
  { type: 'document', source },
]
const common = { id: 'm1', metadata, subagentRunId: 's1' }
const sealed = { ...common, encryptedValue: 'e' }
const toolCalls = [
  { id: 'c1', type: 'function', function: { name: 'n', arguments: '{' }, encryptedValue: 'e', metadata },
]

/** One message of every role, with every field that AG-UI 1.0 describes. */
const messages = [
  { ...sealed, role: 'developer', name: 'n', content: 'c' },
  { ...sealed, role: 'system', name: 'n', content: 'c' },
  { ...sealed, role: 'assistant', name: 'n', content: 'c', toolCalls },
  { ...sealed, role: 'user', name: 'n', content: parts },
  { ...sealed, role: 'user', content: 'text' },
  { ...sealed, role: 'tool', toolCallId: 'c1', content: parts, error: 'e' },
  { ...common, role: 'activity', activityType: 'a', content: { any: null } },
  { ...sealed, role: 'reasoning', content: 'c' },
]

const input = {
  threadId: 't1',
  runId: 'r1',
  protocolVersion: '1.0',
  parentRunId: 'r0',
  state: { any: null },
  messages,
  tools: [{ name: 'n', description: 'd', parameters: { type: 'object' }, metadata }],
  context: [{ description: 'd', value: 'v' }],
  forwardedProps: { any: null },
  resume: [
    { interruptId: 'i1', status: 'resolved', payload: { approved: true }, metadata },
    { interruptId: 'i2', status: 'cancelled' },
  ],
}
const interrupt = {
  id: 'i1',
  reason: 'tool_call',
  message: 'm',
  toolCallId: 'c1',
  responseSchema: { type: 'object' },
  expiresAt: 'soon',
  metadata,
  subagentRunId: 's1',
}
const usage = [
  {
    provider: 'p',
    model: 'm',
    inputTokens: 1,
    outputTokens: 2,
    totalTokens: 3,
    reasoningTokens: 0,
    cachedInputTokens: 0,
    cacheWriteInputTokens: 0,
  },
]
const patch = [
  { op: 'add', path: '/a', value: null, extra: 1 },
  { op: 'remove', path: '' },
  { op: 'replace', path: '/a~1b', value: 1 },
  { op: 'move', from: '/a', path: '/b' },
  { op: 'copy', from: '/a', path: '/b' },
  { op: 'test', path: '/a', value: {} },
]
const finished = { ...base, type: 'RUN_FINISHED', threadId: 't1', runId: 'r1' }
const subagent = { ...base, subagentRunId: 's1' }

/** Every event of AG-UI 1.0, with every field that it describes, in every variant of its unions. */
export const events: { type: string; [field: string]: unknown }[] = [
  { ...own, type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'user', name: 'n' },
  { ...own, type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: '' },
  { ...own, type: 'TEXT_MESSAGE_END', messageId: 'm1' },
  { ...own, type: 'TEXT_MESSAGE_CHUNK', messageId: 'm1', role: 'developer', delta: 'd', name: 'n' },
  { ...own, type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'n', parentMessageId: 'm1' },
  { ...own, type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: 'd' },
  { ...own, type: 'TOOL_CALL_END', toolCallId: 'c1' },
  { ...own, type: 'TOOL_CALL_CHUNK', toolCallId: 'c1', toolCallName: 'n', parentMessageId: 'm1', delta: 'd' },
  { ...own, type: 'TOOL_CALL_RESULT', messageId: 'm2', toolCallId: 'c1', content: parts, role: 'tool' },
  { ...own, type: 'TOOL_CALL_RESULT', messageId: 'm2', toolCallId: 'c1', content: 'text' },
  { ...own, type: 'STATE_SNAPSHOT', snapshot: null },
  { ...own, type: 'STATE_DELTA', delta: patch },
  { ...base, type: 'MESSAGES_SNAPSHOT', messages },
  {
    ...own,
    type: 'ACTIVITY_SNAPSHOT',
    messageId: 'm1',
    activityType: 'a',
    content: { any: null },
    replace: false,
  },
  { ...own, type: 'ACTIVITY_DELTA', messageId: 'm1', activityType: 'a', patch },
  { ...own, type: 'RAW', event: null, source: 's' },
  { ...own, type: 'CUSTOM', name: 'n', value: null },
  {
    ...base,
    type: 'RUN_STARTED',
    threadId: 't1',
    runId: 'r1',
    protocolVersion: '1.0',
    parentRunId: 'r0',
    input,
  },
  { ...finished, result: 1, outcome: { type: 'success', pendingToolCallIds: ['c1'] }, usage },
  { ...finished, outcome: { type: 'interrupt', interrupts: [interrupt] } },
  { ...finished, outcome: { type: 'cancelled' } },
  { ...base, type: 'RUN_ERROR', message: 'm', code: 'c', usage },
  { ...own, type: 'STEP_STARTED', stepName: 's' },
  { ...own, type: 'STEP_FINISHED', stepName: 's' },
  { ...own, type: 'REASONING_START', messageId: 'm1' },
  { ...own, type: 'REASONING_END', messageId: 'm1' },
  { ...own, type: 'REASONING_MESSAGE_START', messageId: 'm1', role: 'reasoning' },
  { ...own, type: 'REASONING_MESSAGE_CONTENT', messageId: 'm1', delta: 'd' },
  { ...own, type: 'REASONING_MESSAGE_END', messageId: 'm1' },
  { ...own, type: 'REASONING_MESSAGE_CHUNK', messageId: 'm1', delta: 'd' },
  { ...own, type: 'REASONING_ENCRYPTED_VALUE', subtype: 'tool-call', entityId: 'c1', encryptedValue: 'e' },
  {
    ...subagent,
    type: 'SUBAGENT_STARTED',
    name: 'n',
    description: 'd',
    parentSubagentRunId: 's0',
    parentToolCallId: 'c1',
    parentMessageId: 'm1',
  },
  { ...subagent, type: 'SUBAGENT_FINISHED', result: 1, outcome: { type: 'success' } },
  { ...subagent, type: 'SUBAGENT_FINISHED', outcome: { type: 'suspended', interruptIds: ['i1'] } },
  { ...subagent, type: 'SUBAGENT_ERROR', message: 'm', code: 'c' },
]
