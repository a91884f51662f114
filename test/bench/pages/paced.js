/** One event at a time; the page has drawn it before the next one comes. */
export async function* paced(events) {
  for (const event of events) {
    yield event
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The events of one answer. */
export function answer(deltas) {
  return [
    { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' },
    ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta })),
    { type: 'TEXT_MESSAGE_END', messageId: 'm' },
  ]
}

/** The same as one whole run of a stream of AG-UI events. */
export function ofRun({ threadId, runId }, events) {
  const run = { threadId, runId }
  return [{ type: 'RUN_STARTED', ...run }, ...events, { type: 'RUN_FINISHED', ...run, finishReason: 'stop' }]
}
