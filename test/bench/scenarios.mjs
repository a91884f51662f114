import { argumentsText, batches, conversation, cut, cutBytes, once, prose, textDeltas } from './material.mjs'

/**
 * What an agent answers, in the two languages that the contenders speak: AG-UI events (`agui`) and the chunks of the AI SDK's UI
 * message stream (`chunks`), each a list of runs. A run is what stands between its start and its finish; who sends it adds those.
 */

/** One message out of deltas, on top of a history. */
export function textScenario(deltas, history = []) {
  return {
    kind: 'text',
    history,
    deltas,
    text: deltas.join(''),
    agui: [{ batches: batches(textEvents(deltas)) }],
    chunks: once(() => [textChunks(deltas)]),
  }
}

export const manyDeltas = once((count) => textScenario(textDeltas(count)))

/** The same 1,000 deltas on histories of different lengths. */
export const onHistory = once((count) => textScenario(textDeltas(1000), conversation(count)))

/** One message of so many characters. */
export const longMessage = once((size) => {
  const deltas = []
  for (let have = 0, seed = 0; have < size; seed++) {
    const [delta] = textDeltas(1, seed % 997)
    deltas.push(delta)
    have += delta.length
  }
  return textScenario(deltas)
})

/** A conversation of several answers, in deltas of 64 characters, out of ASCII: each takes one byte where a store keeps flat texts. */
export function plainConversation(turns, size) {
  const answers = Array.from({ length: turns }, (_, turn) =>
    cut(prose(size, turn).replace(/[^ -~]/g, 'x'), 64),
  )
  return {
    kind: 'text',
    turns,
    history: [],
    texts: answers.map((deltas) => deltas.join('')),
    agui: answers.map((deltas, turn) => ({ batches: batches(textEvents(deltas, `m${turn}`)) })),
    chunks: once(() => answers.map(textChunks)),
  }
}

/** The arguments of one call, in deltas of 50 characters. */
export const longArguments = once((size) => {
  const text = argumentsText(size)
  const deltas = cut(text, 50)
  const call = { toolCallId: 'call', toolCallName: 'write' }
  const events = [
    { type: 'TOOL_CALL_START', ...call, parentMessageId: 'm' },
    ...deltas.map((delta) => ({ type: 'TOOL_CALL_ARGS', toolCallId: 'call', delta })),
    { type: 'TOOL_CALL_END', toolCallId: 'call' },
    { type: 'TOOL_CALL_RESULT', messageId: 'r', toolCallId: 'call', content: '"written"' },
  ]
  const chunks = [
    { type: 'tool-input-start', toolCallId: 'call', toolName: 'write', dynamic: true },
    ...deltas.map((inputTextDelta) => ({ type: 'tool-input-delta', toolCallId: 'call', inputTextDelta })),
    {
      type: 'tool-input-available',
      toolCallId: 'call',
      toolName: 'write',
      input: JSON.parse(text),
      dynamic: true,
    },
    { type: 'tool-output-available', toolCallId: 'call', output: 'written', dynamic: true },
  ]
  return {
    kind: 'args',
    history: [],
    deltas,
    text,
    agui: [{ batches: batches(events) }],
    chunks: () => [chunks],
  }
})

/** So many calls in one message, each asked about; then, each approved, their results. */
export const manyCalls = once((count) => {
  const calls = Array.from({ length: count }, (_, i) => ({
    toolCallId: `call-${i}`,
    approvalId: `approval-${i}`,
    toolName: 'remove',
    input: { path: `src/file-${i}.ts`, force: i % 2 === 0 },
  }))
  const asked = calls.flatMap(({ toolCallId, approvalId, toolName, input }) => [
    { type: 'TOOL_CALL_START', toolCallId, toolCallName: toolName, parentMessageId: 'm' },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(input) },
    { type: 'TOOL_CALL_END', toolCallId },
    {
      type: 'CUSTOM',
      name: 'approval-requested',
      value: {
        toolCallId,
        toolName,
        input,
        approval: { id: approvalId, needsApproval: true, options: ['deny', 'once'] },
      },
    },
  ])
  const interrupts = calls.map(({ toolCallId, approvalId, toolName, input }) => ({
    id: approvalId,
    reason: 'tool_call',
    toolCallId,
    metadata: { countersign: { toolName, input } },
  }))
  const results = calls.map(({ toolCallId }, i) => ({
    type: 'TOOL_CALL_RESULT',
    messageId: `r-${i}`,
    toolCallId,
    content: '"removed"',
  }))
  const done = textEvents(['Done.'], 'm2')
  const askedChunks = calls.flatMap(({ toolCallId, approvalId, toolName, input }) => [
    { type: 'tool-input-start', toolCallId, toolName, dynamic: true },
    { type: 'tool-input-delta', toolCallId, inputTextDelta: JSON.stringify(input) },
    { type: 'tool-input-available', toolCallId, toolName, input, dynamic: true },
    { type: 'tool-approval-request', approvalId, toolCallId },
  ])
  const resultChunks = calls.map(({ toolCallId }) => ({
    type: 'tool-output-available',
    toolCallId,
    output: 'removed',
    dynamic: true,
  }))
  return {
    kind: 'calls',
    history: [],
    calls,
    agui: [{ batches: batches(asked), interrupts }, { batches: batches([...results, ...done]) }],
    chunks: () => [askedChunks, [...resultChunks, ...textChunks(['Done.'])]],
  }
})

/** The body of a response with so many events, as reads that are cut anywhere. The head, which names the run, is made by who sends it. */
export const eventStream = once((count) => {
  const deltas = textDeltas(count)
  const encode = (events) => cutBytes(events.map(frame).join(''))
  return {
    kind: 'sse',
    history: [],
    deltas,
    text: deltas.join(''),
    agui: [{ reads: encode(textEvents(deltas)) }],
    chunks: once(() => encode(textChunks(deltas))),
  }
})

export function frame(event) {
  return `data: ${JSON.stringify(event)}\n\n`
}

function textEvents(deltas, messageId = 'm') {
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
    ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })),
    { type: 'TEXT_MESSAGE_END', messageId },
  ]
}

function textChunks(deltas) {
  return [
    { type: 'text-start', id: 't' },
    ...deltas.map((delta) => ({ type: 'text-delta', id: 't', delta })),
    { type: 'text-end', id: 't' },
  ]
}
