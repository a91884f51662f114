import {
  type AGUIEvent,
  asString,
  type Interrupt,
  isRecord,
  omitUndefined,
  parseJson,
  sameJson,
} from '@countersign/core'
import { field, type RawChunk, unknownId } from './fields.js'
import { aiSdkMetadata } from './mark.js'
import {
  type AiSdkApproval,
  type AiSdkMessage,
  type AiSdkTool,
  isToolPart,
  stepsOf,
  toolNameOf,
} from './message.js'
import type { StepReader } from './read-step.js'
import { callExtras, requestOf, resultMetadata } from './tool-part.js'

/** What the stream has sent about a call so far. */
interface Call {
  readonly id: string
  readonly name: string
  readonly step: number
  readonly providerExecuted: boolean
  state: 'input' | 'available' | 'asked' | 'approved' | 'answered' | 'ended'
  text: string
  /** What was streamed of the arguments before they began anew. */
  streamed: string
  extras: Record<string, unknown>
  /** An approval request that the server answers itself. */
  automatic: AiSdkApproval | undefined
  /** The complete arguments as sent. */
  given: unknown
  readonly isFreeText: boolean
}

/** How a call ended, as fields of its part. */
export type AiSdkOutcome = Pick<AiSdkTool, 'state' | 'output' | 'errorText' | 'resultProviderMetadata'>

/** Converts the calls of an AI SDK message to events. `newId` generates ids of result messages. */
export function createCallReader(
  emit: (event: AGUIEvent) => void,
  newId: () => string,
  message: StepReader,
  continued: AiSdkMessage | undefined,
) {
  /** The latest call with each id. */
  const calls = new Map<string, Call>()
  /** Earlier calls with the same id that were still open when the latest one began: providers repeat ids. */
  const earlier = new Map<string, Call[]>()
  /** Those of them that had no approval request. */
  const unasked = new Map<string, Call[]>()
  const automatic = new Map<string, Call[]>()
  const inSteps = new Map<number, Call[]>()
  const everyCall = () => [...[...earlier.values()].flat(), ...calls.values()]
  const interrupts = new Map<Call, Interrupt>()
  const outcomes = new Map<string, AiSdkOutcome>()
  for (const [step, parts] of (continued ? stepsOf(continued) : []).entries())
    for (const part of parts) if (isToolPart(part)) add(knownCall(part, step))

  function add(call: Call): void {
    calls.set(call.id, call)
    put(inSteps, call.step, call)
    if (call.automatic) put(automatic, call.automatic.id, call)
  }

  function found(chunk: RawChunk): Call {
    const id = field(chunk, 'toolCallId')
    const call = calls.get(id)
    if (!call) throw unknownId(chunk, id)
    return call
  }

  /** The call that is still open; the latest if several have that id. */
  function foundOpen(chunk: RawChunk): Call {
    const call = found(chunk)
    if (call.state !== 'ended') return call
    const before = earlier.get(call.id) ?? []
    while (before.at(-1)?.state === 'ended') before.pop()
    return before.at(-1) ?? call
  }

  /** Approval requests arrive in the order of the calls. */
  function foundUnasked(chunk: RawChunk): Call {
    const call = found(chunk)
    const before = unasked.get(call.id) ?? []
    while (before[0] && before[0].state !== 'available') before.shift()
    return before[0] ?? call
  }

  function start(chunk: RawChunk): Call {
    const id = field(chunk, 'toolCallId')
    const name = field(chunk, 'toolName')
    const providerExecuted = chunk.providerExecuted === true
    const parentMessageId = message.place()
    const extras = extrasOf(chunk)
    const { number: step } = message
    const isFreeText = chunk.inputEncoding === 'text'
    const none = { text: '', streamed: '', automatic: undefined, given: undefined }
    const call: Call = { id, name, step, providerExecuted, isFreeText, state: 'input', extras, ...none }
    const before = calls.get(id)
    if (before && before.state !== 'ended') put(earlier, id, before)
    if (before?.state === 'available') put(unasked, id, before)
    add(call)
    const own = { ...(providerExecuted && { countersign: { providerExecuted } }), ...aiSdkMetadata(extras) }
    const metadata = Object.keys(own).length > 0 ? { metadata: own } : {}
    emit({ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, parentMessageId, ...metadata })
    return call
  }

  /** A call of an earlier step may have the same id; so may another one of this step, if it starts again or has other arguments. */
  function openCall(chunk: RawChunk): Call | undefined {
    const call = calls.get(field(chunk, 'toolCallId'))
    if (call?.step !== message.number) return undefined
    const isAnswered = call.state === 'answered' || call.state === 'approved'
    if (isAnswered && chunk.type === 'tool-input-available') return undefined
    const isWhole = call.state === 'available' || call.state === 'asked'
    if (isWhole && chunk.type === 'tool-input-start') return undefined
    const { input = call.given } = chunk
    return isWhole && !sameJson(input, call.given) ? undefined : call
  }

  /** As in the SDK, the arguments begin anew. Events can't take back what was streamed: the end of the call names other arguments. */
  function startAgain(call: Call, chunk: RawChunk): void {
    if (call.state !== 'input') return
    call.streamed ||= call.text
    call.text = ''
    call.extras = { ...call.extras, ...extrasOf(chunk) }
  }

  function grow(call: Call, delta: string): void {
    call.text += delta
    if (delta !== '' && call.streamed === '') emit({ type: 'TOOL_CALL_ARGS', toolCallId: call.id, delta })
  }

  /** Completes the arguments. If the server changed what was streamed (defaults of a schema), the changed input is what will run. */
  function complete(call: Call, chunk: RawChunk): void {
    const { input } = chunk
    call.given = input
    if (call.text === '' && input !== undefined) grow(call, JSON.stringify(input))
    const isChanged = input !== undefined && !sameJson(parseJson(call.streamed || call.text), input)
    call.extras = { ...call.extras, ...extrasOf(chunk) }
    call.state = 'available'
    const whole = isChanged && { countersign: { arguments: JSON.stringify(input) } }
    const own = { ...whole, ...aiSdkMetadata(call.extras) }
    const metadata = Object.keys(own).length > 0 ? { metadata: own } : {}
    emit({ type: 'TOOL_CALL_END', toolCallId: call.id, ...metadata })
  }

  /** A server may withhold `tool-input-available`, at which an SDK client would run a client tool. */
  function endInput(call: Call): void {
    if (call.state !== 'input') return
    const input = call.text === '' ? {} : parseJson(call.text)
    complete(call, { type: 'tool-input-available', input })
  }

  function readInput(chunk: RawChunk): void {
    if (chunk.type === 'tool-input-start') {
      const call = openCall(chunk)
      if (call) startAgain(call, chunk)
      else start(chunk)
      return
    }
    if (chunk.type === 'tool-input-delta') {
      const call = found(chunk)
      const delta = field(chunk, 'inputTextDelta')
      // Free text is not JSON: it is sent complete, as a JSON string.
      if (call.state === 'input' && !call.isFreeText) grow(call, delta)
      return
    }
    const earlier = calls.get(field(chunk, 'toolCallId'))
    const isFault = chunk.type === 'tool-input-error'
    if (earlier?.state === 'approved' && !isFault && sameJson(chunk.input, earlier.given)) {
      leave(earlier, chunk)
      return
    }
    // The SDK keeps provider metadata of an error with the result.
    const said = isFault ? { ...chunk, providerMetadata: undefined } : chunk
    const call = openCall(chunk) ?? start(said)
    if (call.state !== 'input') return
    complete(call, said)
    if (isFault) fail(call, chunk)
  }

  /** The user approved a call that the server leaves to this client. */
  function leave(call: Call, { input }: RawChunk): void {
    call.state = 'available'
    const { id: toolCallId, name: toolName } = call
    emit({ type: 'CUSTOM', name: 'client-tool-ready', value: { toolCallId, toolName, input } })
  }

  function ask(call: Call, chunk: RawChunk): void {
    const { approvalDescriptor: descriptor, reason, isAutomatic, signature, inputSchemaInput } = chunk
    const approval: AiSdkApproval = {
      id: field(chunk, 'approvalId'),
      ...omitUndefined({ descriptor, requestReason: asString(reason), signature: asString(signature) }),
      ...(isAutomatic === true && { isAutomatic }),
      // `null` is also an input.
      ...(inputSchemaInput !== undefined && { inputSchemaInput }),
    }
    if (isAutomatic === true) {
      call.automatic = approval
      put(automatic, approval.id, call)
      return
    }
    endInput(call)
    call.state = 'asked'
    const { id: toolCallId, name: toolName } = call
    const request = requestOf(approval)
    emit({ type: 'CUSTOM', name: 'approval-requested', value: { toolCallId, toolName, approval: request } })
    interrupts.set(
      call,
      omitUndefined({
        id: approval.id,
        reason: 'tool_call',
        toolCallId,
        message: request.message,
        metadata: { countersign: { approval: request, ...omitUndefined({ token: request.token }) } },
      }),
    )
  }

  /** The server's automatic answer. An answer to a request for the user is ignored: a stream must not approve on the user's behalf. */
  function takeResponse(chunk: RawChunk): void {
    const id = field(chunk, 'approvalId')
    for (const call of automatic.get(id) ?? []) {
      if (call.automatic?.id !== id) continue
      const { approved, reason } = chunk
      call.automatic = {
        ...call.automatic,
        approved: approved === true,
        ...omitUndefined({ reason: asString(reason) }),
      }
    }
  }

  function settle(
    call: Call,
    outcome: AiSdkOutcome,
    result: { content: string; flag?: 'denied' | 'cancelled' | 'error' },
    code?: string,
  ): void {
    if (call.state === 'ended') return
    call.state = 'ended'
    interrupts.delete(call)
    message.interrupt()
    const { resultProviderMetadata } = outcome
    outcomes.set(call.id, outcome)
    const own = omitUndefined({ resultProviderMetadata, approval: call.automatic })
    emit({
      type: 'TOOL_CALL_RESULT',
      messageId: newId(),
      toolCallId: call.id,
      role: 'tool',
      content: result.content,
      ...resultMetadata(result.flag, own, code),
    })
  }

  function fail(call: Call, chunk: RawChunk): void {
    const errorText = asString(chunk.errorText) ?? 'The tool failed.'
    const outcome = { state: 'output-error' as const, errorText, ...resultProvider(chunk) }
    settle(call, outcome, {
      content: JSON.stringify({ type: 'execution-error', reason: errorText }),
      flag: 'error',
    })
  }

  function readOutput(chunk: RawChunk): void {
    const call = foundOpen(chunk)
    endInput(call)
    if (chunk.type === 'tool-output-error') fail(call, chunk)
    else if (chunk.type === 'tool-output-denied') deny(call)
    else if (chunk.preliminary === true) report(call, chunk.output)
    else succeed(call, chunk)
  }

  /** Our own server says what became of a call that the stream does not show: the SDK has no chunk for that. */
  function readDecided({ data }: RawChunk): void {
    const { toolCallId, content, said } = isRecord(data) ? data : {}
    const { outcome, code, decided } = isRecord(said) ? said : {}
    if (typeof toolCallId !== 'string' || typeof content !== 'string') return
    if (!isRecord(decided) || calls.has(toolCallId)) return
    const metadata = { countersign: omitUndefined({ outcome, code, decided }) }
    emit({ type: 'TOOL_CALL_RESULT', messageId: newId(), toolCallId, role: 'tool', content, metadata })
  }

  function deny(call: Call): void {
    const content = JSON.stringify({ type: 'execution-denied', reason: call.automatic?.reason })
    settle(call, { state: 'output-denied' }, { content, flag: 'denied' })
  }

  function report({ id: toolCallId, name: toolName }: Call, data: unknown = null): void {
    emit({ type: 'CUSTOM', name: 'tool-progress', value: { toolCallId, toolName, data } })
  }

  function succeed(call: Call, chunk: RawChunk): void {
    const { output = null } = chunk
    const outcome = { state: 'output-available' as const, output, ...resultProvider(chunk) }
    settle(call, outcome, { content: JSON.stringify(output) })
  }

  /** Ends calls that will get no more arguments or no result, so that nobody waits for them. */
  function giveUp(some: readonly Call[], isMeant: (call: Call) => boolean): void {
    for (const call of some) {
      if (!isMeant(call)) continue
      const isWhole = call.state !== 'input'
      if (!isWhole) emit({ type: 'TOOL_CALL_END', toolCallId: call.id })
      const reason = isWhole ? 'The run was stopped.' : 'The run ended before its arguments were complete.'
      const content = JSON.stringify({ type: 'execution-cancelled', reason })
      const outcome = { state: 'output-error' as const, errorText: reason }
      settle(call, outcome, { content, flag: 'cancelled' }, isWhole ? 'interrupted' : 'incomplete-arguments')
    }
  }

  return {
    readInput,
    readOutput,
    readDecided,
    takeResponse,
    readRequest: (chunk: RawChunk) => ask(foundUnasked(chunk), chunk),
    /** The step of these calls was reset. */
    dropStep(step: number): void {
      const dropped = inSteps.get(step) ?? []
      inSteps.delete(step)
      giveUp(dropped, ({ state }) => state !== 'ended')
      for (const { id } of dropped) calls.delete(id)
    },
    /** What the finished stream leaves to the user and to this client. */
    end(isStopped: boolean): {
      readonly interrupts: readonly Interrupt[]
      readonly pending: readonly string[]
    } {
      giveUp(
        everyCall(),
        ({ state, providerExecuted }) =>
          state === 'input' || (isStopped && state === 'available' && !providerExecuted),
      )
      const left = everyCall().filter(
        ({ state, providerExecuted }) => state === 'available' && !providerExecuted,
      )
      return { interrupts: [...interrupts.values()], pending: left.map(({ id }) => id) }
    },
    /** How each call ended that ended in this stream. */
    outcomes: outcomes as ReadonlyMap<string, AiSdkOutcome>,
  }
}

function put<K>(lists: Map<K, Call[]>, key: K, call: Call): void {
  if (!lists.get(key)?.push(call)) lists.set(key, [call])
}

function extrasOf(chunk: RawChunk): Record<string, unknown> {
  const { title, toolMetadata, providerMetadata: callProviderMetadata, dynamic } = chunk
  return callExtras({
    dynamic,
    toolMetadata,
    callProviderMetadata,
    ...omitUndefined({ title: asString(title) }),
  })
}

function resultProvider({ providerMetadata }: RawChunk): { resultProviderMetadata?: unknown } {
  return providerMetadata === undefined ? {} : { resultProviderMetadata: providerMetadata }
}

function stateOf({ state, approval }: AiSdkTool): Call['state'] {
  if (state === 'approval-requested') return 'asked'
  if (state === 'approval-responded' && approval?.approved) return 'approved'
  // A denial is only this page's answer until the server says how the call ended.
  return state === 'approval-responded' || state === 'output-denied' ? 'answered' : 'ended'
}

/** A call of the message that the stream continues. Only calls waiting for approval or answered are still open. */
function knownCall(part: AiSdkTool, step: number): Call {
  const state = stateOf(part)
  return {
    id: part.toolCallId,
    name: toolNameOf(part),
    step,
    providerExecuted: part.providerExecuted === true,
    state,
    text: '',
    streamed: '',
    extras: {},
    automatic: part.approval?.isAutomatic ? part.approval : undefined,
    given: state === 'approved' ? part.input : undefined,
    isFreeText: false,
  }
}
