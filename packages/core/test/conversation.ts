import type {
  Delivery,
  MessagePart,
  ToolCallApproval,
  ToolCallPart,
  ToolResultPart,
  UIMessage,
} from '@countersign/core'
import fc from 'fast-check'

/** What is left of a value that is sent as JSON. */
export const overTheWire = <T>(value: T): T => JSON.parse(JSON.stringify(value))

// Whatever a view can hold: generated as plans, so that ids are unique and what belongs together stays together.

const json = fc.jsonValue({ maxDepth: 2 }).map(overTheWire)
const words = fc.string({ maxLength: 8, unit: 'grapheme' })
const metadata = fc.dictionary(
  words.filter((key) => !['countersign', 'subagent', '__proto__'].includes(key)),
  json,
  { minKeys: 1, maxKeys: 2 },
)
const maybe = <K extends string, T>(key: K, value: fc.Arbitrary<T>): fc.Arbitrary<{ [P in K]?: T }> =>
  fc
    .option(value, { nil: undefined })
    .map((given) => (given === undefined ? {} : ({ [key]: given } as { [P in K]: T })))

const merged = <T extends object>(...arbitraries: fc.Arbitrary<Partial<T>>[]): fc.Arbitrary<Partial<T>> =>
  fc.tuple(...arbitraries).map((pieces) => Object.assign({}, ...pieces))

const question = merged<ToolCallApproval>(
  fc.constant({ needsApproval: true }),
  fc.constantFrom<Partial<ToolCallApproval>>(
    { options: ['deny', 'once'] },
    { options: ['deny', 'once', 'session'] },
  ),
  maybe('allowEdits', fc.oneof(fc.boolean(), fc.array(words, { maxLength: 2 }))),
  maybe('message', words),
  maybe('expiresAt', fc.constant('2027-01-01T00:00:00.000Z')),
  maybe(
    'display',
    json.filter((value) => value !== undefined),
  ),
  maybe('token', fc.string({ minLength: 1, maxLength: 8 })),
)

const response = (approved: boolean, deliveries: readonly Delivery[]) =>
  merged<ToolCallApproval>(
    question,
    fc.constant({ approved }),
    maybe('reason', words),
    approved ? maybe('scope', fc.constantFrom('once' as const, 'session' as const)) : fc.constant({}),
    approved ? maybe('input', json) : fc.constant({}),
    fc.constantFrom(...deliveries).map((delivery) => ({ delivery })),
  )

const input = fc.oneof(
  json.map((value) => ({ arguments: JSON.stringify(value), input: value })),
  fc.constant({ arguments: '', input: {} }),
  fc.constant({ arguments: '{"path":' }),
)

/** A call without its ids, and its result if it has one. */
interface Plan {
  call: Omit<ToolCallPart, 'id' | 'approval' | 'type'>
  approval?: Partial<ToolCallApproval> | undefined
  result?: Pick<ToolResultPart, 'content' | 'metadata'> | undefined
}

const failed = (outcome: 'denied' | 'cancelled' | 'error', reason: string, code?: string) => ({
  content: JSON.stringify({ type: `execution-${outcome}`, reason }),
  metadata: { countersign: { outcome, ...(code !== undefined && { code }) } },
})

const none = fc.constant(undefined)
const settled = ['settled'] as const
const outcomes: fc.Arbitrary<Pick<Plan, 'approval' | 'result'> & { more: Partial<ToolCallPart> }> = fc.oneof(
  fc.constant({ more: { state: 'input-complete' as const } }),
  question.map((approval) => ({ more: { state: 'approval-requested' as const }, approval })),
  fc
    .oneof(
      response(true, ['waiting', 'sent', 'unknown', 'settled']),
      response(false, ['waiting', 'sent', 'unknown']),
    )
    .map((approval) => ({ more: { state: 'approval-responded' as const }, approval })),
  response(true, ['waiting']).map((approval) => ({
    more: { state: 'approval-responded' as const },
    approval: { ...approval, problem: 'ledger-unavailable' as const },
  })),
  fc.option(response(true, settled)).map((approval) => ({
    more: { state: 'executing' as const },
    ...(approval && { approval }),
  })),
  fc.tuple(fc.oneof(none, response(true, settled)), json).map(([approval, output]) => ({
    more: { state: 'complete' as const, output },
    approval,
    result: { content: JSON.stringify(output) },
  })),
  fc.tuple(fc.oneof(none, response(true, settled)), words.filter(Boolean)).map(([approval, reason]) => ({
    more: { state: 'error' as const, error: { message: reason, code: 'interrupted' } },
    approval,
    result: failed('error', reason, 'interrupted'),
  })),
  fc.tuple(fc.oneof(none, response(false, settled)), words.filter(Boolean)).map(([approval, reason]) => ({
    more: { state: 'denied' as const, error: { message: reason } },
    approval,
    result: failed('denied', reason),
  })),
  fc
    .tuple(
      question,
      fc.constantFrom<Delivery>('waiting', 'sent', 'unknown', 'settled'),
      fc.boolean(),
      fc.boolean(),
    )
    .map(([approval, delivery, expired, known]) => ({
      more: { state: 'cancelled' as const },
      approval: { ...approval, delivery, ...(expired && { problem: 'approval-expired' as const }) },
      result: known ? failed('cancelled', 'nobody answered') : undefined,
    })),
  fc.tuple(response(true, settled), fc.boolean()).map(([approval, known]) => ({
    more: { state: 'cancelled' as const, error: { message: 'Too late.', code: 'approval-stale' } },
    approval: { ...approval, problem: 'approval-stale' as const },
    result: known ? failed('cancelled', 'Too late.', 'approval-stale') : undefined,
  })),
)

const plan: fc.Arbitrary<Plan> = fc
  .tuple(input, outcomes, maybe('providerExecuted', fc.constant(true)), maybe('metadata', metadata), words)
  .map(([given, { more, ...rest }, provider, extra, name]) => ({
    call: { name, state: 'input-complete', ...given, ...provider, ...extra, ...more },
    ...rest,
  }))

const file: fc.Arbitrary<MessagePart> = fc
  .tuple(fc.constantFrom('image' as const, 'document' as const), words, maybe('metadata', metadata))
  .map(([media, value, extra]) => ({
    type: 'file',
    media,
    source: { type: 'data', value, mimeType: 'text/plain' },
    ...extra,
  }))
const textPart: fc.Arbitrary<MessagePart> = words.map((content) => ({ type: 'text', text: content }))
const sourcePart: fc.Arbitrary<MessagePart> = fc
  .tuple(words, maybe('url', words))
  .map(([id, url]) => ({ type: 'source', id, ...url }))
const dataPart: fc.Arbitrary<MessagePart> = fc
  .tuple(words, json)
  .map(([name, data]) => ({ type: 'data', name, data }))
const reasoning = fc.tuple(words, maybe('encryptedValue', words), maybe('metadata', metadata))

const about = merged<UIMessage>(maybe('metadata', metadata), maybe('createdAt', fc.nat()))

const userMessage = fc
  .tuple(about, fc.array(fc.oneof(textPart, file, sourcePart, dataPart), { minLength: 1, maxLength: 3 }))
  .map(
    ([more, parts]) =>
      (id: number): UIMessage => ({ id: `m${id}`, role: 'user', parts, ...more }),
  )
const systemMessage = fc.tuple(about, fc.array(textPart, { minLength: 1, maxLength: 3 })).map(
  ([more, parts]) =>
    (id: number): UIMessage => ({ id: `m${id}`, role: 'system', parts, ...more }),
)

type Piece = { part: MessagePart } | { thought: [string, object, object] } | { plan: Plan; later: number }

const piece: fc.Arbitrary<Piece> = fc.oneof(
  { weight: 3, arbitrary: fc.oneof(textPart, file, sourcePart, dataPart).map((part) => ({ part })) },
  { weight: 1, arbitrary: reasoning.map((thought) => ({ thought })) },
  { weight: 3, arbitrary: fc.record({ plan, later: fc.nat(3) }) },
)

/** A message of the application's own that shows one thing: what a page makes of an activity (F56). */
const dataAlone = dataPart.map((part): Piece[] => [{ part }])

const assistantMessage = fc
  .tuple(about, fc.oneof({ weight: 6, arbitrary: fc.array(piece, { maxLength: 5 }) }, dataAlone))
  .map(
    ([more, pieces]) =>
      (id: number): UIMessage => ({ id: `m${id}`, role: 'assistant', parts: assemble(id, pieces), ...more }),
  )

/** The parts of a message: each result somewhere behind its call. */
function assemble(id: number, pieces: readonly Piece[]): MessagePart[] {
  const parts: MessagePart[] = []
  const results: { part: MessagePart; wait: number }[] = []
  pieces.forEach((given, n) => {
    if ('part' in given) parts.push(given.part)
    else if ('thought' in given) {
      const [content, ...more] = given.thought
      parts.push({ type: 'reasoning', id: `r${id}-${n}`, text: content, ...Object.assign({}, ...more) })
    } else {
      const { call, approval, result: content } = given.plan
      const callId = `c${id}-${n}`
      const asked = approval && ({ ...approval, id: `approval_${id}-${n}` } as ToolCallApproval)
      parts.push({ type: 'tool-call', id: callId, ...call, ...(asked && { approval: asked }) })
      const told: MessagePart = {
        type: 'tool-result',
        id: `o${id}-${n}`,
        toolCallId: callId,
        content: '',
        ...content,
      }
      if (content) results.push({ part: told, wait: given.later })
    }
    for (const waiting of results.filter((entry) => entry.wait-- === 0)) parts.push(waiting.part)
  })
  parts.push(...results.filter(({ wait }) => wait >= 0).map(({ part }) => part))
  return parts
}

/** A conversation with everything a peer can have in its view. */
export const conversation = fc
  .array(fc.oneof({ weight: 3, arbitrary: assistantMessage }, userMessage, systemMessage), { maxLength: 6 })
  .map((makers) => makers.map((make, id) => make(id)))
