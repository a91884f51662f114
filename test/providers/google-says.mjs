/** Answers in Google's own words: what a server sends that says a text and makes calls. */
export function contentSays({ text = '', calls = [], stream = true }) {
  const functionCalls = calls.map(({ id, name, arguments: given }) => ({
    functionCall: { id, name, args: JSON.parse(given) },
  }))
  const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 }
  if (!stream) {
    const answer = said([...(text === '' ? [] : [{ text }]), ...functionCalls], { finishReason: 'STOP' })
    return {
      body: Buffer.from(JSON.stringify({ ...answer, usageMetadata })),
      contentType: 'application/json; charset=UTF-8',
    }
  }
  const middle = Math.floor(text.length / 2)
  const halves = [text.slice(0, middle), text.slice(middle)].filter((half) => half !== '')
  const chunks = [
    ...halves.map((half) => said([{ text: half }])),
    ...functionCalls.map((part) => said([part])),
    { ...said([{ text: '' }], { finishReason: 'STOP' }), usageMetadata },
  ]
  const frames = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  return { body: Buffer.from(frames.join('')), contentType: 'text/event-stream' }
}

function said(parts, more = {}) {
  return {
    candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
    modelVersion: 'test-model',
    responseId: 'answer_1',
  }
}
