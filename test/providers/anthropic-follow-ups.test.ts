import { expect, test } from 'vitest'
import { recorded, recordedAgent, say } from './recorded-loop.js'
import { casesOf, ownFixtures, type ReplayCase } from './replay.mjs'

/** What the provider said must come back block by block: thoughts with their signatures, calls of its own with their results, citations. */

interface Block {
  type: string
  [key: string]: unknown
}

interface Turn {
  readonly role: string
  readonly content: readonly Block[]
}

const cases = casesOf(ownFixtures).filter(
  ({ protocol, status }) => protocol === 'anthropic-messages' && status === 200,
)

function messagesOf(body: unknown): readonly Turn[] {
  if (typeof body !== 'object' || body === null || !('messages' in body) || !Array.isArray(body.messages))
    return []
  return body.messages
}

/** The blocks of a recording, put together without any SDK; calls without their whole input are none. */
function blocksOf({ file }: ReplayCase): readonly Block[] {
  const blocks: Block[] = []
  const inputs: string[] = []
  const closed = new Set<number>()
  for (const line of recorded(file).toString().split('\n')) {
    if (!line.startsWith('data: ')) continue
    const { type, index, content_block: begun, delta } = JSON.parse(line.slice('data: '.length))
    if (type === 'content_block_start') blocks[index] = begun
    if (type === 'content_block_stop') closed.add(index)
    const block = blocks[index]
    if (type !== 'content_block_delta' || block === undefined) continue
    if (delta.type === 'text_delta') block.text += delta.text
    if (delta.type === 'thinking_delta') block.thinking += delta.thinking
    if (delta.type === 'signature_delta') block.signature = delta.signature
    if (delta.type === 'citations_delta')
      block.citations = [...(Array.isArray(block.citations) ? block.citations : []), delta.citation]
    if (delta.type === 'input_json_delta') inputs[index] = (inputs[index] ?? '') + delta.partial_json
  }
  return (
    blocks
      .map((block, index) => (inputs[index] ? { ...block, input: parsed(inputs[index]) } : block))
      .filter((block, index) => block.type !== 'tool_use' || closed.has(index))
      // the provider says a blank between two citations, and refuses it
      .filter(({ text }) => typeof text !== 'string' || text.trim() !== '')
      .map(plain)
  )
}

/** A client may leave out what is empty, and who called where it was the model. */
function plain({ citations, caller, cache_control: _, ...block }: Block): Block {
  return { ...block, ...(Array.isArray(citations) && citations.length > 0 && { citations }) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

for (const entry of cases) {
  if (entry.contains.includes('error') || (entry.step ?? 1) > 1) continue
  test(`${entry.id}: after a reload the next request holds its blocks as they came`, async () => {
    const next = cases.filter(({ id }) => id === 'anthropic/text')
    const paused = entry.contains.includes('pause')
    const steps = paused ? cases.filter(({ group }) => group === entry.group) : [entry]
    const { agent, requests } = await recordedAgent([...steps, ...next, ...next])
    const { messages } = await say(agent, 'go')
    await say(agent, 'and now?', JSON.parse(JSON.stringify(messages)))
    const turns = messagesOf(requests.at(-1)?.body)
    const said = turns[1]?.content.map(plain) ?? []
    const expected = steps.flatMap(blocksOf)
    // a result that came with the next answer stands with its call
    expect(said.slice(0, expected.length)).toEqual(paused ? nextToCalls(expected) : expected)
  })
}

function nextToCalls(blocks: readonly Block[]): readonly Block[] {
  const results = new Map(blocks.map((block) => [block.tool_use_id, block]))
  return blocks.flatMap((block) => {
    if ('tool_use_id' in block) return []
    const result = results.get(block.id)
    return block.id === undefined || result === undefined ? [block] : [block, result]
  })
}

for (const last of cases) {
  const { group, step = 1, request } = last
  if (step === 1 || request === undefined) continue
  test(`${last.id}: the request holds what the recorded one holds`, async () => {
    const steps = cases.filter((entry) => entry.group === group && (entry.step ?? 1) <= step)
    const { agent, requests } = await recordedAgent(steps)
    await say(agent, 'go')
    const ours = messagesOf(requests[step - 1]?.body).slice(1)
    const theirs = messagesOf(JSON.parse(recorded(request).toString())).slice(1)
    const comparable = ({ role, content }: Turn) => ({
      role,
      content: content.map(plain).map((block) => {
        if (block.type !== 'tool_result') return block
        const { content: _, ...rest } = block
        return rest
      }),
    })
    expect(ours.map(comparable)).toEqual(theirs.map(comparable))
  })
}

test('a paused answer goes on in the same run, and its provider gets everything back', async () => {
  const steps = cases.filter(({ group }) => group === 'anthropic/pause-turn')
  const { agent, requests } = await recordedAgent(steps)
  const { text, finishReason } = await say(agent, 'go')
  const [, second] = requests
  const turns = messagesOf(second?.body)
  expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant'])
  const [first] = steps
  expect(turns[1]?.content.map(plain)).toEqual(first && blocksOf(first))
  expect(finishReason).toBe('stop')
  expect(text).not.toBe('')
})
