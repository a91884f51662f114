/**
 * Answers in OpenAI's own words: what a server sends that says a text and makes calls. A call with `asks` is one of an MCP server of the
 * provider that it asks about under that id; one with `asked` is the call that it asked about, with its `output`.
 */
export function responsesSay({ text, calls = [], stream = true }) {
  const output = [...(text === undefined ? [] : [messageItem(text)]), ...calls.map(callItem)]
  const response = {
    id: 'resp_1',
    object: 'response',
    model: 'test-model',
    status: 'completed',
    output,
    usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
  }
  if (!stream) return json(response)
  const started = { ...response, status: 'in_progress', output: [], usage: null }
  return sse([
    { type: 'response.created', response: started },
    ...output.flatMap(itemEvents),
    { type: 'response.completed', response },
  ])
}

function messageItem(text) {
  const content = [{ type: 'output_text', text, annotations: [] }]
  return { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
}

function callItem({ id, name, arguments: given, asks, asked, output }) {
  const call = { name, arguments: given, server_label: 'docs' }
  if (asks !== undefined) return { ...call, type: 'mcp_approval_request', id: asks }
  if (asked === undefined)
    return { type: 'function_call', id: `fc_${id}`, call_id: id, name, arguments: given, status: 'completed' }
  return {
    ...call,
    type: 'mcp_call',
    id,
    status: 'completed',
    approval_request_id: asked,
    output,
    error: null,
  }
}

function itemEvents(item, index) {
  const where = { output_index: index, item_id: item.id }
  const deltas =
    item.type === 'message'
      ? halves(item.content[0].text).map((delta) => ({
          type: 'response.output_text.delta',
          ...where,
          content_index: 0,
          delta,
        }))
      : item.type === 'function_call'
        ? halves(item.arguments).map((delta) => ({
            type: 'response.function_call_arguments.delta',
            ...where,
            delta,
          }))
        : []
  const begun = {
    ...item,
    ...(item.type === 'function_call' && { arguments: '' }),
    ...(item.type === 'message' && { content: [] }),
  }
  return [
    { type: 'response.output_item.added', output_index: index, item: begun },
    ...deltas,
    { type: 'response.output_item.done', output_index: index, item },
  ]
}

/** The same for Chat Completions, which knows no calls of the provider's own. */
export function chatSay({ text, calls = [], stream = true }) {
  const toolCalls = calls.map(({ id, name, arguments: given }, index) => ({
    index,
    id,
    type: 'function',
    function: { name, arguments: given },
  }))
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
  const finish = toolCalls.length > 0 ? 'tool_calls' : 'stop'
  if (!stream) {
    const message = { role: 'assistant', content: text ?? null, tool_calls: toolCalls }
    const choices = [{ index: 0, message, finish_reason: finish }]
    return json({ id: 'chat_1', object: 'chat.completion', model: 'test-model', choices, usage })
  }
  const deltas = [
    { role: 'assistant', content: '' },
    ...halves(text ?? '').map((content) => ({ content })),
    ...toolCalls.flatMap(({ function: { name, arguments: given }, ...call }) => [
      { tool_calls: [{ ...call, function: { name, arguments: '' } }] },
      ...halves(given).map((delta) => ({
        tool_calls: [{ index: call.index, function: { arguments: delta } }],
      })),
    ]),
  ]
  return sse(
    [
      ...deltas.map((delta) => chunk({ delta, finish_reason: null })),
      chunk({ delta: {}, finish_reason: finish }),
      { ...chunk(), choices: [], usage },
    ],
    'data: [DONE]\n\n',
  )
}

function chunk(choice = {}) {
  const choices = [{ index: 0, ...choice }]
  return { id: 'chat_1', object: 'chat.completion.chunk', model: 'test-model', choices }
}

function halves(text) {
  const middle = Math.floor(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter((half) => half !== '')
}

function sse(events, end = '') {
  const frames = events.map(
    (event) => `${event.type ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`,
  )
  return { body: Buffer.from(frames.join('') + end), contentType: 'text/event-stream' }
}

function json(value) {
  return { body: Buffer.from(JSON.stringify(value)), contentType: 'application/json' }
}
