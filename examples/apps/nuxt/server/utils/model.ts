import { isSuccess, scriptedModel } from '@countersign/server'

const words =
  'Let me see what is needed for that. I compare the prices of the shops nearby, look at what was ordered before, and then place the order, if you agree.'

/**
 * Stands in for a language model, so that you need no API key: it says some words, calls the tool, and replies once the call has a
 * result. A real one: `npm install @countersign/openai openai`, set OPENAI_API_KEY, and `export const model = openai({ model: 'gpt-5' })`.
 */
export const model = scriptedModel(async function* ({ messages }) {
  const [last] = messages.at(-1)?.content ?? []
  if (typeof last === 'object' && last.type === 'tool-result') {
    const delta = isSuccess(last.outcome) ? String(last.outcome.value) : 'Then nothing is ordered.'
    yield { type: 'text-delta', delta }
    yield { type: 'finish', reason: 'stop' }
    return
  }
  for (const delta of words.match(/\S+\s*/g) ?? []) {
    yield { type: 'text-delta', delta }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const said = typeof last === 'object' && last.type === 'text' ? last.text : ''
  const [, count = '1', item = 'coffee'] = /(\d+) (\w+?)s?\b/.exec(said) ?? []
  const id = `call-${messages.length}`
  yield {
    type: 'tool-call',
    id,
    name: 'place_order',
    arguments: JSON.stringify({ item, count: Number(count) }),
  }
  yield { type: 'finish', reason: 'tool_calls' }
})
