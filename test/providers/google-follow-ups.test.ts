import { expect, test } from 'vitest'
import { recorded, recordedAgent, say } from './recorded-loop.js'
import { casesOf, ownFixtures, type ReplayCase } from './replay.mjs'

/** What the model said must come back part by part, each signature with the part that it came with. */

interface Part {
  readonly text?: string
  readonly thought?: boolean
  readonly functionCall?: {
    readonly id?: string
    readonly name?: string
    readonly args?: object
    readonly willContinue?: boolean
    readonly partialArgs?: object
  }
  readonly functionResponse?: { readonly id?: string; readonly name?: string }
  readonly [key: string]: unknown
}

interface Content {
  readonly role: string
  readonly parts: readonly Part[]
}

const cases = casesOf(ownFixtures).filter(
  ({ protocol, status }) => protocol === 'gemini-generate' && status === 200,
)

function contentsOf(body: unknown): readonly Content[] {
  if (typeof body !== 'object' || body === null || !('contents' in body) || !Array.isArray(body.contents))
    return []
  return body.contents
}

/** The parts of a recording: neighbours of unsigned text are one, unsigned thoughts and empty texts are none. */
function partsOf({ file }: ReplayCase): readonly Part[] {
  const parts: Part[] = []
  for (const frame of recorded(file)
    .toString()
    .split(/\r?\n\r?\n/)) {
    if (!frame.startsWith('data: ')) continue
    const [candidate] = JSON.parse(frame.slice('data: '.length)).candidates ?? []
    for (const part of candidate?.content?.parts ?? []) {
      const { text, thought, thoughtSignature: signature } = part
      const last = parts.at(-1)
      if ((thought || text === '') && signature === undefined) continue
      if (text !== undefined && signature === undefined && last?.text !== undefined && !last.thoughtSignature)
        parts[parts.length - 1] = { text: last.text + text }
      else parts.push(part)
    }
  }
  return parts.map(withoutId)
}

/** The provider gave no ids to these calls; a client may. Signatures are bytes, in either alphabet of base64. */
function withoutId({ functionCall, functionResponse, thoughtSignature, ...part }: Part): Part {
  const { id: _, ...call } = functionCall ?? {}
  const { name } = functionResponse ?? {}
  return {
    ...part,
    ...(typeof thoughtSignature === 'string' && {
      thoughtSignature: thoughtSignature.replaceAll('-', '+').replaceAll('_', '/'),
    }),
    ...(functionCall && { functionCall: call }),
    ...(functionResponse && { functionResponse: name === undefined ? {} : { name } }),
  }
}

/** Arguments that came place by place are whole in a request. */
const isStreamed = ({ id }: ReplayCase) => id.includes('streamed-args')

for (const entry of cases) {
  if (entry.contains.includes('error') || (entry.step ?? 1) > 1 || isStreamed(entry)) continue
  test(`${entry.id}: after a reload the next request holds its parts as they came`, async () => {
    const next = cases.filter(({ id }) => id === 'gemini/text')
    const { agent, requests } = await recordedAgent([entry, ...next, ...next])
    const { messages } = await say(agent, 'go')
    await say(agent, 'and now?', JSON.parse(JSON.stringify(messages)))
    const expected = partsOf(entry)
    const [, turn] = contentsOf(requests.at(-1)?.body)
    const said = expected.length === 0 ? [] : (turn?.parts.map(withoutId) ?? [])
    expect(said.slice(0, expected.length)).toEqual(expected)
  })
}

for (const last of cases) {
  const { group, step = 1, request } = last
  if (step === 1 || request === undefined) continue
  test(`${last.id}: the request holds what the recorded one holds`, async () => {
    const steps = cases.filter((entry) => entry.group === group && (entry.step ?? 1) <= step)
    const { agent, requests } = await recordedAgent(steps)
    await say(agent, 'go')
    const ours = contentsOf(requests[step - 1]?.body).slice(1)
    const theirs = contentsOf(JSON.parse(recorded(request).toString())).slice(1)
    const comparable = ({ role, parts }: Content) => ({ role, parts: parts.map(withoutId) })
    expect(ours.map(comparable)).toEqual(theirs.map(comparable))
    const ids = (role: string) =>
      ours
        .filter((turn) => turn.role === role)
        .flatMap(({ parts }) => parts.map((part) => (part.functionCall ?? part.functionResponse)?.id))
    expect(ids('user')).toEqual(ids('model'))
    expect(new Set(ids('model')).size).toBe(ids('model').length)
  })
}

for (const entry of cases.filter(isStreamed)) {
  test(`${entry.id}: the calls go back whole, the signature with the first`, async () => {
    const next = cases.filter(({ id }) => id === 'gemini/text')
    const { agent, requests } = await recordedAgent([entry, ...next])
    await say(agent, 'go')
    const { toolCalls } = JSON.parse(recorded(entry.expect).toString())
    const parts = contentsOf(requests[1]?.body)[1]?.parts ?? []
    expect(parts.map(({ functionCall }) => functionCall?.args)).toEqual(
      toolCalls.map((call: { arguments: unknown }) => call.arguments),
    )
    expect(parts.map(({ thoughtSignature }) => typeof thoughtSignature)).toEqual(
      parts.map((_, index) => (index === 0 ? 'string' : 'undefined')),
    )
  })
}
