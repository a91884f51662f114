import { readdirSync, readFileSync } from 'node:fs'
import { createEventReader, isCountersignError, PROTOCOL_VERSION } from '@countersign/core'
import { expect, test } from 'vitest'

interface Expectation {
  outcome?: 'completed' | 'failed'
  errorContains?: string
  eventTypes?: string[]
  eventTypesAbsent?: string[]
  eventPaths?: Record<string, unknown>
  eventAbsentPaths?: string[]
  warnings?: string[]
  noWarnings?: boolean
  runError?: boolean | string
}

interface Fixture {
  name: string
  stream: { type: string; [field: string]: unknown }[]
  expect: Expectation
  expectOverrides?: { typescript?: Expectation }
}

const corpus = `${import.meta.dirname}/fixtures`

/** The 1.1 fixtures declare "1.1" where they mean "the version of this client", and "1.2" where they mean a newer one. */
const current = (text: string) =>
  text.replaceAll('"protocolVersion":"1.1"', `"protocolVersion":"${PROTOCOL_VERSION}"`)

function load(): Fixture[] {
  return ['streams', 'streams-1.0', 'streams-draft'].flatMap((folder) =>
    readdirSync(`${corpus}/${folder}`)
      .filter((file) => file.endsWith('.json'))
      .map((file) =>
        JSON.parse(current(JSON.stringify(JSON.parse(readFileSync(`${corpus}/${folder}/${file}`, 'utf8'))))),
      ),
  )
}

/** What these ask for lies outside the reader; the verdict here would say nothing about it. */
const elsewhere: Record<string, string> = {
  'era-0-0-39-flattens-content': 'what is sent to an old peer: the translations for servers before 1.0',
  'era-0-0-45-thinking-translated': 'retired event types: the translations for servers before 1.0',
  'era-0-0-57-subagent-dropped-with-warning':
    'what an old peer is spared: the translations for servers before 1.0',
}

/** The reader's part (verdict, delivered events) is checked here; the rest of the expectation needs the named part. */
const halfElsewhere: Record<string, string> = {
  'activity-delta-missing-target-tolerated': 'messages held: the processor',
  'activity-replace-false-preserves': 'messages held: the processor',
  'combining-mark-split-from-its-base': 'messages held: the processor',
  'current-peer-declares-protocol-version': 'the request: the client',
  'era-current-peer-keeps-modern-content': 'the request: the client',
  'messages-snapshot-reconciles-by-id': 'messages held: the processor',
  'metadata-merges-last-write-wins': 'messages held: the processor',
  'multibyte-text-assembles': 'messages held: the processor',
  'state-delta-unappliable-warns-and-keeps': 'state and its warning: the processor',
  'state-delta-unknown-op-dropped': 'state held: the processor',
  'state-null-snapshot-applies': 'state held: the processor',
  'state-snapshot-replaces': 'state held: the processor',
}

/** Fixtures that pin an admitted gap of the reference client: here the rule holds, so the verdict is the other one. */
const gaps: Record<string, string> = {
  'truncated-run-reported-as-completed': 'truncated-stream',
}

/** What a failed fixture must fail for: our own words for the reason its `errorContains` gives. */
const reasons: Record<string, RegExp> = {
  'chunk-conflicting-role-fatal': /TEXT_MESSAGE_CHUNK: role/,
  'chunk-conflicting-tool-name-fatal': /TOOL_CALL_CHUNK: toolCallName/,
  'custom-closes-chunk-stream-fatal': /TEXT_MESSAGE_CHUNK: the first chunk needs messageId/,
  'event-after-run-finished-fatal': /TEXT_MESSAGE_START: .*RUN_FINISHED/,
  'first-chunk-missing-id-fatal': /TEXT_MESSAGE_CHUNK: the first chunk needs messageId/,
  'first-tool-chunk-missing-name-fatal': /TOOL_CALL_CHUNK: the first chunk needs toolCallName/,
  'open-message-at-run-finished-fatal': /RUN_FINISHED: .*open-message-at-run-finished-m-1/,
  'reasoning-message-wrong-role-fatal': /REASONING_MESSAGE_START\/role: .*reasoning/,
  'run-finished-with-active-subagent-fatal': /RUN_FINISHED: .*s-run-finished-active-subagent-1/,
  'run-finished-wrong-run-id-fatal': /RUN_FINISHED: runId/,
  'second-run-on-another-thread-fatal': /RUN_STARTED: threadId/,
  'subagent-attribution-mismatch-fatal': /TOOL_CALL_END: .*tc-subagent-attribution-mismatch-1/,
  'subagent-finished-unstarted-fatal': /SUBAGENT_FINISHED: .*s-subagent-finished-unstarted-1/,
}

function read(fixture: Fixture) {
  const delivered: { type: string }[] = []
  const warnings: string[] = []
  const reader = createEventReader({ onWarning: (warning) => warnings.push(warning.message) })
  try {
    for (const event of fixture.stream) reader.push(event, (next) => delivered.push(next))
    reader.end()
    return { delivered, warnings }
  } catch (error) {
    return { delivered, warnings, error }
  }
}

function at(value: unknown, path: string): unknown {
  let here: unknown = value
  for (const key of path.split('.')) here = (here as Record<string, unknown> | undefined)?.[key]
  return here
}

const fixtures = load()

test('the corpus is complete and every exception names a fixture of it', () => {
  const names = new Set(fixtures.map(({ name }) => name))
  expect(names.size).toBe(50)
  for (const name of [elsewhere, halfElsewhere, gaps, reasons].flatMap(Object.keys))
    expect(names).toContain(name)
})

for (const fixture of fixtures.filter(({ name }) => !(name in elsewhere))) {
  const wanted = { ...fixture.expect, ...fixture.expectOverrides?.typescript }
  const code = gaps[fixture.name]

  test(`${fixture.name}: ${code ?? wanted.outcome}`, () => {
    const { delivered, warnings, error } = read(fixture)
    if (code) {
      expect(isCountersignError(error) && error.code).toBe(code)
      expect(delivered).toEqual(fixture.stream)
    } else if (wanted.outcome === 'failed') {
      expect(isCountersignError(error)).toBe(true)
      expect(String(error)).toMatch(reasons[fixture.name] ?? 'a reason is missing in this test')
    } else expect(error).toBeUndefined()

    const types = delivered.map(({ type }) => type)
    if (wanted.eventTypes) expect(types).toEqual(wanted.eventTypes)
    for (const type of wanted.eventTypesAbsent ?? []) expect(types).not.toContain(type)
    for (const [path, value] of Object.entries(wanted.eventPaths ?? {}))
      expect(at(delivered, path)).toEqual(value)
    for (const path of wanted.eventAbsentPaths ?? []) expect(at(delivered, path)).toBeUndefined()
    if (wanted.runError !== undefined) {
      const failure = delivered.find(({ type }) => type === 'RUN_ERROR')
      expect(at(failure, 'message')).toContain(wanted.runError === true ? '' : wanted.runError)
    }
    if (wanted.noWarnings) expect(warnings).toEqual([])
    if (!halfElsewhere[fixture.name]?.includes('warning')) {
      for (const part of wanted.warnings ?? [])
        expect(warnings.join('\n')).toContain(part.replace('1.1', PROTOCOL_VERSION))
    }
  })
}
