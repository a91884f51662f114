import type {
  AGUIEvent,
  Interrupt,
  JsonSchema,
  ResumeEntry,
  ToolQuestion,
  ToolReply,
} from '@countersign/core'
import type { AnswerSource } from '../channel/answer-queue.js'
import { nextArrival } from '../channel/arrival.js'
import { randomId } from '../encoding/ids.js'
import { anySignal, onAbort } from '../encoding/signals.js'
import type { ReadyCall } from '../tools/call.js'
import { jsonSchemaOf, validate } from '../tools/schema.js'
import type { RunScope } from './scope.js'

type AskingCall = Pick<ReadyCall, 'id' | 'name'>

/**
 * Asks the user for a running tool, over the live channel: an interrupt while the run is open. Its answer arrives like a live verdict, only
 * in this run and under an id that only its reader knows. No such answer can approve a call: its content goes to the tool, and
 * approvals have their own ids.
 *
 * @throws CountersignError `invalid-tool` if the schema of the answer can't be sent to the page.
 */
export async function askPerson(
  scope: RunScope,
  call: AskingCall,
  question: ToolQuestion,
  over: AbortSignal,
): Promise<ToolReply> {
  const { answers, settings, emit } = scope
  const { responseSchema = jsonSchemaOf(question.answer, 'responseSchema', call.name) } = question
  if (answers === undefined) {
    settings.warn(`${call.name} asked the user, but ${NO_CHANNEL}`)
    return { action: 'decline', reason: `The user was not asked: ${NO_CHANNEL}` }
  }
  const stops = [scope.stop, over, question.signal].filter((signal) => signal !== undefined)
  const waitSignal = anySignal(stops)
  if (waitSignal.aborted) return NOBODY_WAITS
  const interrupt = interruptOf(call, question.message, responseSchema)
  // Sent at once: the run may finish in the next turn of the event loop.
  const withdraw = () => void emit(closed(interrupt.id, 'cancel'))
  const unwatch = onAbort(waitSignal, withdraw)
  const reply = await replyTo(scope, answers, question, interrupt, waitSignal)
  unwatch()
  if (!waitSignal.aborted) await emit(closed(interrupt.id, reply.action))
  return reply
}

/** Asks until a valid answer arrives, or none will come. */
async function replyTo(
  { emit, settings }: RunScope,
  answers: AnswerSource,
  question: ToolQuestion,
  interrupt: Interrupt,
  waitSignal: AbortSignal,
): Promise<ToolReply> {
  let problem: string | undefined
  for (;;) {
    await emit(requested(interrupt, problem))
    const arrival = await nextArrival(answers, interrupt.id, { waitSignal, now: settings.now })
    if (arrival.kind !== 'answer') return NOBODY_WAITS
    const reading = await readReply(arrival.entry, question)
    if (reading.ok) return reading.reply
    if (waitSignal.aborted) return NOBODY_WAITS
    problem = reading.problem
  }
}

const NOBODY_WAITS: ToolReply = { action: 'cancel', reason: 'Nobody waits for the answer any more.' }
const NO_CHANNEL = 'the run takes no answers while it is open (option `live`, or `answers` of agent.run).'

function interruptOf(call: AskingCall, message: string, responseSchema: JsonSchema): Interrupt {
  return {
    id: randomId('question_'),
    reason: 'input_required',
    message,
    responseSchema: { ...responseSchema },
    metadata: { countersign: { askedBy: { toolCallId: call.id, toolName: call.name } } },
  }
}

/** AG-UI has interrupts only at a run's end; while it is open, they are sent as a custom event. */
function requested({ metadata, ...interrupt }: Interrupt, problem: string | undefined): AGUIEvent {
  const own = { ...Object(metadata?.countersign), ...(problem !== undefined && { problem }) }
  return {
    type: 'CUSTOM',
    name: 'interrupt-requested',
    value: { ...interrupt, metadata: { countersign: own } },
  }
}

function closed(id: string, action: ToolReply['action']): AGUIEvent {
  return { type: 'CUSTOM', name: 'interrupt-closed', value: { id, action } }
}

type Reading =
  | { readonly ok: true; readonly reply: ToolReply }
  | { readonly ok: false; readonly problem: string }

async function readReply({ status, payload }: ResumeEntry, { answer }: ToolQuestion): Promise<Reading> {
  if (status === 'cancelled') return { ok: true, reply: { action: 'decline', reason: 'The user declined.' } }
  // The call that asks is left with the run.
  const checked = await validate(answer, payload, undefined)
  return checked.ok
    ? { ok: true, reply: { action: 'accept', content: checked.value } }
    : { ok: false, problem: checked.reason }
}
