// The driver for streams of AG-UI's conformance corpus. It speaks for the built, public packages: run `pnpm build` first.
import { ChatClient, stream } from '@countersign/client'
import { statePatch } from '@countersign/client/state-patch'
import { readSubagent, toAGUIMessages } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { compat, upgradeMessages } from '@countersign/tanstack'

/** The id of the message that makes the client ask: a fixture has only the history before it. It is left out of what is reported. */
const PROMPT = 'conformance-prompt'

/** Any input will do: the tools of a fixture are described, never run. */
const anything = { '~standard': { version: 1, vendor: 'conformance', validate: (value) => ({ value }) } }

/**
 * Runs one fixture through a `ChatClient` whose connection replays the stream: `{ verdict, messages, state, warnings, error, events,
 * runErrors, request }`. `failed`: the client rejected the stream, and `error` says why. A run that reports its own failure is
 * `completed`; what it reported is in `runErrors`. `events` are those the client took in, chunks expanded.
 */
export async function runFixture(fixture) {
  const events = []
  const warnings = []
  let request
  const client = new ChatClient({
    ...idsOf(fixture),
    connection: stream((input) => {
      // What it asks for afterwards by itself is no part of the fixture.
      if (request) return over(input)
      request = structuredClone(input)
      return replay(fixture.stream)
    }),
    initialMessages: fromAGUIMessages(upgradeMessages(fixture.input?.messages ?? [])),
    tools: (fixture.input?.tools ?? []).map(describedTool),
    persistence: listener((event) => events.push(structuredClone(event))),
    statePatch,
    compat: compatOf(fixture),
    notify: 'sync',
    onWarning: (message) => warnings.push(message),
  })
  const { status, error } = await client.sendMessage('Go on.')
  const { messages, state } = client.getSnapshot()
  // What comes after a RUN_ERROR is rejected beside the reason that the server gave: it is the cause of the error.
  const fault = status === 'failed' ? error : undefined
  const rejected = fault?.code === 'run-error' ? fault.cause : fault
  client.dispose()
  return {
    verdict: rejected ? 'failed' : 'completed',
    messages: messages.flatMap(heldMessages).filter(({ id }) => id !== PROMPT),
    // AG-UI 1.0, run input: no state means the empty object.
    state: state === undefined ? {} : state,
    warnings,
    error: rejected ? rejected.message : '',
    events,
    runErrors: events.flatMap(({ type, message }) => (type === 'RUN_ERROR' ? [message] : [])),
    request: request && { ...request, messages: request.messages.filter(({ id }) => id !== PROMPT) },
  }
}

/** The run of the fixture is the one that the client asks for: the ids of its first RUN_STARTED. */
function idsOf({ name, stream: events }) {
  const { threadId = `thread-${name}`, runId = `run-${name}` } =
    events.find(({ type }) => type === 'RUN_STARTED') ?? {}
  let made = 0
  const ids = [PROMPT, runId]
  return { threadId, generateId: () => ids[made++] ?? `conformance-${made}` }
}

/** By value, each event by itself, as over a wire. */
async function* replay(events) {
  for (const event of events) yield structuredClone(event)
}

async function* over({ threadId, runId }) {
  yield { type: 'RUN_STARTED', threadId, runId }
  yield { type: 'RUN_FINISHED', threadId, runId }
}

function compatOf({ client: { maxProtocolVersion: version } = {} }) {
  return version === undefined ? undefined : compat({ version })
}

function describedTool(tool) {
  return { ...tool, location: 'client', input: anything, execute: () => new Promise(() => {}) }
}

/** Hears of every event that the client takes in, in the place where a storage would; keeps nothing. */
function listener(onEvent) {
  return {
    open(session) {
      session.onStep = (step) => {
        if (/^[A-Z_]+$/.test(step.type)) onEvent(step)
      }
    },
  }
}

/** A request carries neither activities nor calls that broke off half-way, so they are told here. */
function heldMessages(message) {
  const { id, role, parts, metadata } = message
  const [first] = parts
  if (role !== 'assistant' || parts.length !== 1 || first.type !== 'data')
    return toAGUIMessages([{ ...message, parts: parts.map(heldPart) }])
  const held = { id, role: 'activity', activityType: first.name, content: first.data }
  const subagent = readSubagent(metadata)
  const by = subagent ? { subagentRunId: subagent.id } : {}
  return [{ ...held, ...by, ...(metadata && { metadata }) }]
}

function heldPart(part) {
  if (part.type !== 'tool-call' || part.error?.code !== 'incomplete-arguments') return part
  const { error: _, ...call } = part
  return { ...call, state: 'input-complete' }
}
