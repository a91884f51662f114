import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { differences, factsOf } from './facts.mjs'
import { protocols } from './protocols.mjs'
import { serveRecording } from './server.mjs'

/** Where our copy of the recordings lies. */
export const ownFixtures = join(import.meta.dirname, 'fixtures')

/** Every body is served at each of these write sizes, in bytes. */
export const writeSizes = [1, 7, 4096, Number.POSITIVE_INFINITY]

const request = {
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
  tools: [],
}

/** The cases of a folder: the entries of its `index.json`. */
export function casesOf(folder) {
  return JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')).cases
}

/** What a case is to give. */
export function expectedOf(entry, folder = ownFixtures) {
  return JSON.parse(readFileSync(join(folder, entry.expect), 'utf8'))
}

/** Whether there is an adapter for a case. */
export function isSpoken({ protocol }) {
  return Object.hasOwn(protocols, protocol)
}

/** The facts that our adapter's events give when a case is served in writes of this size. */
export async function replayCase(entry, { writeSize, folder = ownFixtures, ending = 'clean' } = {}) {
  const protocol = protocols[entry.protocol]
  const { status, contentType } = entry
  const body = readFileSync(join(folder, entry.file))
  const server = await serveRecording({ body, status, contentType, writeSize, ending })
  try {
    const model = protocol.model(server.origin, { stream: streamed(entry, folder), id: entry.model })
    const { events, error } = await listen(model, request)
    return factsOf(events, error, protocol)
  } finally {
    await server.close()
  }
}

/** The body of an HTTP error says nothing of how it was asked for. */
const streamed = (entry) => entry.stream || entry.status !== 200

/** All events of one answer, and what the stream threw behind them, if it did. */
export async function listen(model, asked, signal = new AbortController().signal) {
  const events = []
  try {
    for await (const event of model.stream(asked, { signal })) events.push(event)
    return { events }
  } catch (error) {
    return { events, error }
  }
}

/** How a case differs from what it is to give, at any write size; empty where it agrees. */
export async function checkCase(entry, { folder = ownFixtures, sizes = writeSizes } = {}) {
  const expected = expectedOf(entry, folder)
  const endings = entry.contains.includes('cut') ? ['clean', 'destroyed'] : ['clean']
  const found = []
  for (const ending of endings) {
    for (const writeSize of sizes) {
      const facts = await replayCase(entry, { writeSize, folder, ending })
      for (const difference of differences(facts, expected, entry.status))
        found.push(
          `${difference} (writes of ${writeSize}${ending === 'clean' ? '' : ', connection torn down'})`,
        )
    }
  }
  return found
}

/** Replays a folder and prints, per provider, how many cases agree and how the others differ. */
async function main(folder) {
  const byProvider = new Map()
  for (const entry of casesOf(folder)) {
    const row = byProvider.get(entry.provider) ?? { cases: 0, agreeing: 0, differing: [], skipped: [] }
    byProvider.set(entry.provider, row)
    row.cases++
    if (!isSpoken(entry)) {
      row.skipped.push(`${entry.id}: there is no adapter for ${entry.protocol}`)
      continue
    }
    const found = await checkCase(entry, { folder })
    if (found.length === 0) row.agreeing++
    else row.differing.push(`${entry.id}: ${[...new Set(found)].join('\n    ')}`)
  }
  for (const [provider, { cases, agreeing, differing, skipped }] of byProvider) {
    console.log(
      `${provider}: ${cases} cases, ${agreeing} agreeing, ${differing.length + skipped.length} differing`,
    )
    for (const line of [...differing, ...skipped]) console.log(`  ${line}`)
  }
  return [...byProvider.values()].every(({ cases, agreeing }) => cases === agreeing)
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = (await main(process.argv[2] ?? ownFixtures)) ? 0 : 1
}
