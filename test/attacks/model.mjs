// A model that does whatever the last message of its user says, as one that was talked into anything would. A message that is JSON,
// `{ "calls": [{ name, arguments, id?, providerExecuted?, approval? }] }`, makes these calls; after anything else it says so.

let made = 0

export function model(record) {
  return {
    id: 'scripted/obedient',
    async *stream(request) {
      record.asked(request)
      const last = request.messages.at(-1)
      if (last?.role === 'user') yield* obey(last.content.map(({ text = '' }) => text).join(''))
      else if (last?.role === 'tool') yield* runApproved(last.content, record)
      yield { type: 'text-delta', delta: 'done' }
      yield { type: 'finish', reason: 'stop' }
    },
  }
}

function* obey(text) {
  const { calls = [] } = text.startsWith('{') ? JSON.parse(text) : {}
  for (const { id = `c${++made}`, name, arguments: given, ...more } of calls) {
    yield {
      type: 'tool-call',
      id,
      name,
      arguments: typeof given === 'string' ? given : JSON.stringify(given),
      ...more,
    }
  }
}

/** As a provider does with a tool of its own: once it is told of a yes, the tool runs there. Of `mcpr_silent` it tells no result. */
function* runApproved(answers, record) {
  for (const { type, approved, approvalId } of answers) {
    if (type !== 'approval-response' || !approved) continue
    record.run({ tool: 'provider', input: approvalId })
    if (approvalId === 'mcpr_silent') continue
    const id = `item_${++made}`
    const approval = { id: approvalId, state: 'answered' }
    yield { type: 'tool-call', id, name: 'search', arguments: '{}', providerExecuted: true, approval }
    yield { type: 'tool-result', toolCallId: id, outcome: { kind: 'ok', value: 'found' } }
  }
}
