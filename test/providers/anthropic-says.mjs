/** Answers in Anthropic's own words: what a server sends that says a text and makes calls. */
export function messagesSay({ text, calls = [], stream = true }) {
  const content = [
    ...(text === undefined ? [] : [{ type: 'text', text, citations: null }]),
    ...calls.map(({ id, name, arguments: given }) => ({
      type: 'tool_use',
      id,
      name,
      input: JSON.parse(given),
    })),
  ]
  const stopped = { stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn', stop_sequence: null }
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'test-model' }
  const usage = { input_tokens: 3, output_tokens: 4 }
  if (!stream)
    return {
      body: Buffer.from(JSON.stringify({ ...head, content, ...stopped, usage })),
      contentType: 'application/json',
    }
  const events = [
    {
      type: 'message_start',
      message: { ...head, content: [], usage: { input_tokens: 3, output_tokens: 1 } },
    },
    ...content.flatMap(blockEvents),
    { type: 'message_delta', delta: stopped, usage: { output_tokens: 4 } },
    { type: 'message_stop' },
  ]
  const frames = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  return { body: Buffer.from(frames.join('')), contentType: 'text/event-stream' }
}

function blockEvents(block, index) {
  const deltas =
    block.type === 'text'
      ? halves(block.text).map((text) => ({ type: 'text_delta', text }))
      : halves(JSON.stringify(block.input)).map((json) => ({ type: 'input_json_delta', partial_json: json }))
  const begun = block.type === 'text' ? { ...block, text: '' } : { ...block, input: {} }
  return [
    { type: 'content_block_start', index, content_block: begun },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

function halves(text) {
  const middle = Math.floor(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter((half) => half !== '')
}
