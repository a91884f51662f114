// Compares what came of a fixture with what it expects. A difference that the corpus lets a client of another project have names the
// clause that allows it; the others are ours to answer for.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROTOCOL_VERSION } from '@countersign/core'

/** Where the corpus says it: the section of its README and the point there. */
const relaxed = 'README of the corpus, "What a client of another project may relax"'

const clauses = {
  wording: `${relaxed}, last paragraph: errorContains is the wording of the reference client, another client reads it as "rejected"`,
  warning: `${relaxed}, 1: a warning may use any wording, the specification only says that there SHOULD be one`,
  era: `${relaxed}, 2 (era-*): translations for peers before 1.0 are permitted, not required`,
  gap: `${relaxed}, 3: the fixture pins an admitted gap of the reference client, the rule is the opposite`,
}

/** What makes our version stand for the corpus's. */
export const versionClause =
  'README of the corpus, "Versions": a client puts its own version in place of "1.1" before running'

/** The fixtures in a folder and the folders in it, by name. A file holds one, or a list of them. */
export function loadFixtures(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')))
    .filter((content) => Array.isArray(content.stream) && content.expect)
    .map(inOurVersion)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The corpus of 1.1 writes "1.1" where it means the version of the client that is tested. */
function inOurVersion(fixture) {
  if (!fixture.specPage?.startsWith('/spec/1.1')) return fixture
  const own = (value) =>
    JSON.parse(
      JSON.stringify(value).replaceAll('"protocolVersion":"1.1"', `"protocolVersion":"${PROTOCOL_VERSION}"`),
    )
  const { expect } = fixture
  const warnings = expect.warnings?.map((text) => text.replace('1.1', PROTOCOL_VERSION))
  const read = { ...own(fixture), expect: { ...own(expect), ...(warnings && { warnings }) } }
  return JSON.stringify(read) === JSON.stringify(fixture) ? fixture : { ...read, versionRead: true }
}

/** What differs, as `{ what, expected, actual, allowedBy?, rule }`: the clause that allows it, and the page of the rule that is tested. */
export function judge(fixture, result) {
  const expected = { ...fixture.expect, ...fixture.expectOverrides?.typescript }
  const isGap = fixture.description?.startsWith('ADMITTED GAP')
  const isEra = fixture.name.startsWith('era-')
  return Object.entries(expected)
    .flatMap(([key, wanted]) => checks[key]?.(wanted, result, expected) ?? [])
    .map((difference) => ({
      ...difference,
      rule: fixture.specPage,
      ...(isEra && { allowedBy: clauses.era }),
      ...(isGap && difference.what === 'outcome' && { allowedBy: clauses.gap }),
    }))
}

const differs = (what, expected, actual, allowedBy) => [
  { what, expected, actual, ...(allowedBy && { allowedBy }) },
]

/** One check for each key of `expect`; each answers the differences it finds. */
const checks = {
  outcome: (wanted, { verdict, error }) =>
    wanted === verdict ? [] : differs('outcome', wanted, error ? `${verdict}: ${error}` : verdict),

  // That it was rejected is for `outcome` to say.
  errorContains: (wanted, { error }) =>
    error === '' || error.includes(wanted) ? [] : differs('errorContains', wanted, error, clauses.wording),

  runError: (wanted, { runErrors }) =>
    runErrors.some((message) => wanted === true || message.includes(wanted))
      ? []
      : differs('runError', wanted, runErrors),

  eventTypes: (wanted, { events }) => whole('eventTypes', wanted, typesOf(events)),

  eventTypesAbsent: (wanted, { events }) =>
    wanted.flatMap((type) =>
      typesOf(events).includes(type) ? differs('eventTypesAbsent', type, 'it was delivered') : [],
    ),

  eventPaths: (wanted, { events }) =>
    Object.entries(wanted).flatMap(([path, value]) => whole(`event ${path}`, value, at(events, path))),

  eventAbsentPaths: (wanted, { events }) =>
    wanted.flatMap((path) =>
      at(events, path) === undefined ? [] : differs(`event ${path}`, 'absent', at(events, path)),
    ),

  warnings: (wanted, { warnings }) =>
    wanted.flatMap((part) =>
      warnings.some((warning) => warning.includes(part))
        ? []
        : differs('warnings', part, warnings, warnings.length > 0 ? clauses.warning : undefined),
    ),

  noWarnings: (wanted, { warnings }) =>
    wanted && warnings.length > 0 ? differs('noWarnings', [], warnings) : [],

  messageCount: (wanted, { messages }) => whole('messageCount', wanted, messages.length),
  messages: (wanted, { messages }) => subset('messages', wanted, messages),
  state: (wanted, { state }) => subset('state', wanted, state),
  request: (wanted, { request }) => subset('request', wanted, request),

  requestAbsentPaths: (wanted, { request }) =>
    wanted.flatMap((path) =>
      at(request, path) === undefined ? [] : differs(`request ${path}`, 'absent', at(request, path)),
    ),
}

const typesOf = (events) => events.map(({ type }) => type)

function at(value, path) {
  return path.split('.').reduce((here, key) => here?.[key], value)
}

function whole(what, wanted, actual) {
  return sameShape(wanted, actual, true) ? [] : differs(what, wanted, actual)
}

function subset(what, wanted, actual) {
  return sameShape(wanted, actual, false) ? [] : differs(what, wanted, actual)
}

/** Equal, or (where not `exact`) equal on the keys that are wanted; arrays have the same length either way. */
function sameShape(wanted, actual, exact) {
  if (wanted === null || actual === null || typeof wanted !== 'object' || typeof actual !== 'object')
    return wanted === actual
  if (Array.isArray(wanted) !== Array.isArray(actual)) return false
  const keys = Object.keys(wanted)
  if ((exact || Array.isArray(wanted)) && keys.length !== Object.keys(actual).length) return false
  return keys.every((key) => sameShape(wanted[key], actual[key], exact))
}
