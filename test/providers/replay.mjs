import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { readArguments } from '../../scripts/arguments.mjs'
import { serveRecording } from './server.mjs'

const isCommand = process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href
const [asked] = isCommand ? readArguments('replay', { words: 'FOLDER' }).positionals : []

// as a command this runs against what is built
const { differences, factsOf, unknownFacts } = await import('./facts.mjs').catch(explain)
const { protocols } = await import('./protocols.mjs').catch(explain)

function explain(error) {
  if (!isCommand || error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  console.error(`The adapters are not built: run \`pnpm run build\` first.\n${error.message}`)
  process.exit(1)
}

/** Where our copy of the recordings lies. */
export const ownFixtures = join(import.meta.dirname, 'fixtures')

/** Cases of the same form that we wrote ourselves, for what no recording has; `note` says where its facts come from. */
export const writtenCases = join(import.meta.dirname, 'ours')

/** Every body is served at each of these write sizes, in bytes. */
export const writeSizes = [1, 7, 4096, Number.POSITIVE_INFINITY]

const request = {
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
  tools: [],
}

/** Something is wrong with the folder, and not with an adapter. */
export class FolderError extends Error {}

/**
 * The cases of a folder: the entries of its `index.json`.
 *
 * @throws FolderError where there is no such file, or it is not of that form.
 */
export function casesOf(folder) {
  const { cases } = Object(readJson(folder, 'index.json'))
  if (!Array.isArray(cases) || cases.length === 0)
    throw new FolderError(`${join(folder, 'index.json')} lists no cases: it has to be { "cases": [...] }.`)
  for (const entry of cases) {
    const missing = ['id', 'provider', 'protocol', 'file', 'expect', 'contentType'].filter(
      (name) => typeof entry?.[name] !== 'string',
    )
    if (missing.length > 0)
      throw new FolderError(
        `${join(folder, 'index.json')}: the case ${JSON.stringify(entry?.id)} lacks ${missing.join(', ')}.`,
      )
  }
  return cases.map((entry) => ({ stream: true, status: 200, contains: [], ...entry }))
}

/** What a case is to give. */
export function expectedOf(entry, folder = ownFixtures) {
  return readJson(folder, entry.expect)
}

function readJson(folder, file) {
  const text = readOf(folder, file)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new FolderError(`${join(folder, file)} is no JSON: ${error.message}`)
  }
}

function readOf(folder, file) {
  try {
    return readFileSync(join(folder, file))
  } catch (error) {
    throw new FolderError(`${join(folder, file)} cannot be read: ${error.message}`)
  }
}

/** Whether there is an adapter for a case. */
export function isSpoken({ protocol }) {
  return Object.hasOwn(protocols, protocol)
}

/** The facts that our adapter's events give when a case is served in writes of this size. */
export async function replayCase(entry, { writeSize, folder = ownFixtures, ending = 'clean' } = {}) {
  const protocol = protocols[entry.protocol]
  const { status, contentType } = entry
  const body = readOf(folder, entry.file)
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

/** What a case comes to: nothing where it agrees, else why not. What is wrong with its files is a difference too. */
async function reasonsOf(entry, folder, sizes) {
  try {
    if (!isSpoken(entry)) return [`there is no adapter for the protocol ${JSON.stringify(entry.protocol)}`]
    return [...new Set(await checkCase(entry, { folder, sizes }))]
  } catch (error) {
    return [error instanceof FolderError ? error.message : `it could not be replayed: ${error}`]
  }
}

/** The facts that a case expects and that are not known here: they are told, and count for nothing. */
function unjudged(entry, folder) {
  try {
    return unknownFacts(Object(expectedOf(entry, folder)))
  } catch {
    return []
  }
}

/**
 * Replays a folder: for each provider how many cases agree, and how the others differ.
 *
 * @returns {Promise<{ lines: string[], agrees: boolean }>}
 */
export async function replayFolder(folder, sizes = writeSizes) {
  const byProvider = new Map()
  for (const entry of casesOf(folder)) {
    const row = byProvider.get(entry.provider) ?? { cases: 0, differing: [], unjudged: [] }
    byProvider.set(entry.provider, row)
    row.cases++
    const reasons = await reasonsOf(entry, folder, sizes)
    if (reasons.length > 0) row.differing.push(`  ${entry.id}: ${reasons.join('\n    ')}`)
    const unknown = unjudged(entry, folder)
    if (unknown.length > 0)
      row.unjudged.push(`  ${entry.id}: not judged, for no such fact is known here: ${unknown.join(', ')}`)
  }
  const lines = [...byProvider].flatMap(([provider, { cases, differing, unjudged: notes }]) => [
    `${provider}: ${cases} cases, ${cases - differing.length} agreeing, ${differing.length} differing`,
    ...differing,
    ...notes,
  ])
  return { lines, agrees: [...byProvider.values()].every(({ differing }) => differing.length === 0) }
}

async function main(folder) {
  try {
    const { lines, agrees } = await replayFolder(folder)
    console.log(lines.join('\n'))
    return agrees
  } catch (error) {
    if (!(error instanceof FolderError)) throw error
    console.error(error.message)
    return false
  }
}

if (isCommand) {
  const folders = asked === undefined ? [ownFixtures, writtenCases] : [resolve(asked)]
  for (const folder of folders) if (!(await main(folder))) process.exitCode = 1
}
