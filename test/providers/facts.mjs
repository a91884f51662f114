import { createHash } from 'node:crypto'

/**
 * The facts of an `expect.json` out of the events of an adapter. What a provider words in its own way is refined by its protocol.
 *
 * @param {readonly import('@countersign/server').ModelEvent[]} events
 * @param {unknown} error what the stream threw, if it did
 */
export function factsOf(events, error, protocol) {
  const only = (type) => events.filter((event) => event.type === type)
  const text = joined(only('text-delta').filter(({ refusal }) => !refusal))
  const refusal = joined(only('text-delta').filter(({ refusal }) => refusal))
  const reasoning = joined(only('reasoning-delta'))
  const about = Object.assign({}, ...only('metadata').map(({ metadata }) => metadata))
  const calls = callsOf(events)
  const facts = {
    id: about.id ?? null,
    model: about.model ?? null,
    text,
    textLength: text.length,
    textSha256: hash(text),
    reasoningLength: reasoning.length,
    ...(reasoning !== '' && { reasoningSha256: hash(reasoning), reasoningStart: reasoning.slice(0, 80) }),
    refusal: refusal === '' ? null : refusal,
    toolCalls: calls.filter((call) => !call.providerExecuted).map(toolCallFacts),
    providerTools: calls
      .filter((call) => call.providerExecuted && call.approval?.state !== 'requested')
      .map((call) => ({
        id: call.id,
        type: call.metadata.type,
        name: call.name,
        input: parsed(call.arguments),
      })),
    approvalRequests: calls
      .filter((call) => call.approval?.state === 'requested')
      .map((call) => ({
        id: call.approval.id,
        name: call.name,
        serverLabel: call.metadata.serverLabel,
        argumentsText: call.arguments,
        arguments: parsed(call.arguments),
      })),
    citations: only('source').length,
    finishReason: about.finishReason ?? null,
    ...(about.finishDetail !== undefined && { finishDetail: about.finishDetail }),
    finish: only('finish').at(-1)?.reason ?? null,
    usage: only('usage').length === 0 ? null : usageFacts(only('usage').at(-1).usage),
    rawUsage: about.usage ?? null,
    error: error === undefined ? null : errorFacts(error),
    sequence: sequenceOf(events, protocol),
  }
  return protocol.refine?.(facts, events) ?? facts
}

/** The calls of an answer, streamed or whole, each with the metadata of its end and its result, if the provider gave one. */
export function callsOf(events) {
  const calls = []
  const open = new Map()
  for (const event of events) {
    if (event.type === 'tool-call-start') {
      const call = { ...event, arguments: '', deltas: 0, complete: false, metadata: {} }
      calls.push(call)
      open.set(event.id, call)
    } else if (event.type === 'tool-call') {
      const call = {
        ...event,
        deltas: event.arguments === '' ? 0 : 1,
        complete: true,
        metadata: event.metadata ?? {},
      }
      calls.push(call)
      open.set(event.id, call)
    } else if (event.type === 'tool-call-delta') {
      const call = open.get(event.id)
      call.arguments += event.delta
      if (event.delta !== '') call.deltas++
    } else if (event.type === 'tool-call-end') {
      Object.assign(open.get(event.id), {
        complete: true,
        signature: event.signature,
        metadata: event.metadata ?? {},
      })
    } else if (event.type === 'tool-result') {
      const call = open.get(event.toolCallId)
      if (call !== undefined) call.result = event
    }
  }
  return calls
}

function toolCallFacts({ id, name, arguments: text, deltas, complete, metadata }) {
  return {
    id,
    ...(metadata.itemId !== undefined && { itemId: metadata.itemId }),
    name,
    argumentsText: text,
    arguments: complete ? parsed(text) : null,
    ...(!complete && { incomplete: true }),
    ...(metadata.custom && { custom: true }),
    argumentDeltas: deltas,
  }
}

function usageFacts({ inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens }) {
  return Object.fromEntries(
    Object.entries({ inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens }).map(
      ([key, value]) => [key, value ?? null],
    ),
  )
}

/** What an adapter's error says of its provider's. */
function errorFacts(error) {
  const { code, message, status } = error?.data ?? {}
  return { code, message: message ?? String(error), status, adapterCode: error?.code }
}

/** The order in which kinds of content begin. */
function sequenceOf(events, protocol) {
  const sequence = []
  const calls = []
  const say = (kind) => {
    if (sequence.at(-1) !== kind) sequence.push(kind)
  }
  for (const event of events) {
    switch (event.type) {
      case 'text-delta':
        if (event.delta !== '') say(event.refusal ? 'refusal' : 'text')
        break
      case 'reasoning-delta':
        if (event.delta !== '') say('reasoning')
        break
      case 'tool-call':
      case 'tool-call-start':
        calls.push(event)
        say(
          protocol.kindOf?.(event, calls.filter((call) => !call.providerExecuted).length - 1, events) ??
            `tool:${event.name}`,
        )
        break
      default:
        say(protocol.kindOf?.(event, -1, events) ?? sequence.at(-1))
    }
  }
  return sequence.filter((kind) => kind !== undefined)
}

/** What an expectation says of the body, and what is looked at in another way. */
const aboutTheBody = ['protocol', 'stream', 'wire', 'notes', 'error']

/** Every fact that can be judged here. */
const knownFacts = new Set([
  ...aboutTheBody,
  ...['id', 'model', 'text', 'textLength', 'textSha256', 'refusal', 'citations', 'sequence'],
  ...['reasoningLength', 'reasoningSha256', 'reasoningStart', 'redactedReasoning', 'signatures'],
  ...['toolCalls', 'providerTools', 'approvalRequests'],
  ...['finish', 'finishReason', 'finishDetail', 'usage', 'rawUsage'],
])

/** The facts of an expectation that cannot be judged here, by name. */
export function unknownFacts(expected) {
  return Object.keys(expected).filter((key) => !knownFacts.has(key))
}

/**
 * How facts differ from those expected; empty where they agree. An error may keep the SDK from showing what comes with it or after
 * it, so behind one only what was said before counts, and the error itself by the words and the code that the provider gave.
 */
export function differences(facts, expected, status = 200) {
  const { error = null, wire = {} } = expected
  const found = []
  const check = (key, is, should) => {
    if (canonical(is) !== canonical(should)) found.push(`${key}: ${shown(is)} instead of ${shown(should)}`)
  }
  const whole = ['finish', 'finishReason', 'finishDetail', 'usage', 'rawUsage']
  const ignored = [...aboutTheBody, ...unknownFacts(expected), ...(error === null ? [] : whole)]
  for (const [key, should] of Object.entries(expected)) {
    if (!ignored.includes(key))
      check(key, key === 'toolCalls' ? askedOf(facts[key], should) : facts[key], should)
  }
  if (error !== null) {
    check('error', facts.error !== null, true)
    check('error.message', facts.error?.message, error.message)
    if (error.code !== undefined && error.code !== null)
      check('error.code', String(facts.error?.code), String(error.code))
    if (status !== 200) check('error.status', facts.error?.status, status)
  } else if (wire.terminal === false && !wire.done) {
    check('an error, as the body ends without its last event', facts.error !== null, true)
  } else {
    check('error', facts.error, null)
  }
  return found
}

/** Of each call only what is expected of it: that one is `incomplete` is not said of every protocol. */
function askedOf(calls, expected) {
  return calls.map((call, index) =>
    Object.fromEntries(Object.entries(call).filter(([key]) => Object.hasOwn(expected[index] ?? {}, key))),
  )
}

const joined = (deltas) => deltas.map(({ delta }) => delta).join('')
const hash = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** Parsed arguments; none is `{}`, and what is no JSON is `null`. */
export function parsed(text) {
  try {
    return JSON.parse(text || '{}')
  } catch {
    return null
  }
}

function canonical(value) {
  return JSON.stringify(value, (_, inner) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

const shown = (value) => (JSON.stringify(value) ?? 'nothing').slice(0, 300)
