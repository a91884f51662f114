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
