import { isRecord, type ResumeEntry, type RunAgentInput } from '@countersign/core'

type Fields = Readonly<Record<string, unknown>>

/** Where TanStack AI writes what its server needs to know again with the answer, and where it looks for it. */
const BINDING = 'tanstack:interruptBinding'
const CONTINUATION = 'tanstack:interruptContinuation'
const PAYLOAD = 'tanstack:interruptPayload'

/**
 * A request as a `chat()` route of TanStack AI takes it up: the interrupted run is its `parentRunId`, and the reason of a denial is in the
 * `payload` of the answer.
 */
export function tanstackInput({ resume, ...input }: RunAgentInput): RunAgentInput {
  if (!resume) return input
  const parentRunId = resume.flatMap((entry) => tokenOf(entry) ?? []).at(-1)
  return { ...input, ...(parentRunId !== undefined && { parentRunId }), resume: resume.map(asAnswer) }
}

/** The run that asked was kept where an approval has its token: opaque to the client, stored with the question and sent back. */
function tokenOf({ metadata }: ResumeEntry): string | undefined {
  const { token } = own(metadata)
  return typeof token === 'string' ? token : undefined
}

function asAnswer({ metadata, ...entry }: ResumeEntry): ResumeEntry {
  const { countersign: _, ...rest } = metadata ?? {}
  const more = Object.keys(rest).length > 0 ? { metadata: rest } : {}
  const { payload } = entry
  if (!isRecord(payload) || payload.approved === undefined) return { ...entry, ...more }
  const { approved, editedArgs, reason } = payload
  const said = approved ? { ...(editedArgs !== undefined && { editedArgs }) } : reasonOf(reason)
  return { ...entry, ...more, payload: { approved, ...said } }
}

function reasonOf(reason: unknown): Fields {
  return reason === undefined ? {} : { payload: { reason } }
}

/**
 * The events of one response of such a route, in the order and the words of AG-UI 1.0; `RUN_FINISHED` may still come more than once.
 * `begun`: the response goes on with a run that had begun.
 */
export function createTanstackReader(
  { threadId, runId, resume = [] }: Pick<RunAgentInput, 'threadId' | 'runId' | 'resume'>,
  begun = false,
) {
  const yes = new Set(resume.flatMap(({ interruptId, payload }) => (payload?.approved ? [interruptId] : [])))
  const no = new Set(resume.flatMap(({ interruptId }) => (yes.has(interruptId) ? [] : [interruptId])))

  /** The results of answers come before the run has begun, and the model's turns begin it again. */
  function inOrder(event: Fields): Fields[] {
    const isStart = event.type === 'RUN_STARTED'
    if (begun || event.type === 'RUN_ERROR') return isStart ? [] : [event]
    begun = true
    const started = { type: 'RUN_STARTED', threadId, runId }
    return isStart ? [{ ...event, ...started }] : [started, event]
  }

  function translate(event: Fields): Fields[] {
    switch (event.type) {
      case 'TOOL_CALL_RESULT':
        return [asResult(event, no)]
      case 'RUN_FINISHED':
        return asFinished({ ...event, threadId, runId }, yes)
      default:
        return [event]
    }
  }

  return (event: unknown): readonly unknown[] =>
    isRecord(event) ? inOrder(event).flatMap(translate) : [event]
}

/** A result gets an id of its own: it comes under the id of the message that holds the call. */
function asResult(event: Fields, no: ReadonlySet<string>): Fields {
  const { toolCallId } = event
  const failed = theirs(event.metadata).state === 'output-error' && !no.has(`approval_${toolCallId}`)
  const outcome = failed ? { countersign: { outcome: 'error' } } : {}
  const metadata = { ...(isRecord(event.metadata) ? event.metadata : {}), ...outcome }
  return { ...event, messageId: `${toolCallId}-result`, metadata }
}

/** Interrupts that hand a client tool out become pending calls; the others carry what their answer has to bring along. */
function asFinished(event: Fields, yes: ReadonlySet<string>): Fields[] {
  const { finishReason } = theirs(event.metadata)
  const finished = {
    ...event,
    metadata: {
      ...(isRecord(event.metadata) ? event.metadata : {}),
      ...(finishReason ? { finishReason } : {}),
    },
  }
  const outcome = isRecord(event.outcome) ? event.outcome : {}
  if (!Array.isArray(outcome.interrupts)) return [finished]
  const interrupts: readonly unknown[] = outcome.interrupts
  const handedOut = interrupts.filter((one) => bindingOf(one).kind === 'client-tool-execution')
  const asked = interrupts.filter((one) => !handedOut.includes(one)).map(asInterrupt)
  const ready = handedOut.map(bindingOf).filter(({ toolCallId }) => yes.has(`approval_${toolCallId}`))
  const pendingToolCallIds = handedOut.map((one) => bindingOf(one).toolCallId)
  return [
    ...ready.map(({ toolCallId, toolName }) => ({
      type: 'CUSTOM',
      name: 'client-tool-ready',
      value: { toolCallId, toolName, input: inputOf(handedOut, toolCallId) },
    })),
    {
      ...finished,
      outcome: asked.length > 0 ? { ...outcome, interrupts: asked } : { type: 'success', pendingToolCallIds },
    },
  ]
}

function inputOf(handedOut: readonly unknown[], toolCallId: unknown): unknown {
  const found = handedOut.find((one) => bindingOf(one).toolCallId === toolCallId)
  return isRecord(found) && isRecord(found.metadata) ? found.metadata.input : undefined
}

function asInterrupt(interrupt: unknown): unknown {
  if (!isRecord(interrupt)) return interrupt
  const { kind, interruptedRunId: token } = bindingOf(interrupt)
  const more =
    kind === 'generic'
      ? { resume: { ...continuationOf(interrupt), countersign: { token } } }
      : { token, ...(takesEdits(interrupt.responseSchema) && { allowEdits: true }) }
  const metadata = { ...(isRecord(interrupt.metadata) ? interrupt.metadata : {}), countersign: more }
  return { ...interrupt, metadata }
}

/** What the server forgets of a question that concerns no tool, and wants back beside its answer. */
function continuationOf(interrupt: Fields): Fields {
  const {
    interruptId: _,
    interruptedRunId: __,
    generation: ___,
    kind: ____,
    ...binding
  } = bindingOf(interrupt)
  const { reason, message = '', metadata } = interrupt
  const payload = isRecord(metadata) && PAYLOAD in metadata ? { payload: metadata[PAYLOAD] } : {}
  return { [CONTINUATION]: { ...binding, reason, message, ...payload } }
}

/** Its schema has a branch for yes and one for no. */
function takesEdits(schema: unknown): boolean {
  const branches: readonly unknown[] = isRecord(schema) && Array.isArray(schema.oneOf) ? schema.oneOf : []
  return branches.some(
    (branch) => isRecord(branch) && isRecord(branch.properties) && 'editedArgs' in branch.properties,
  )
}

function bindingOf(interrupt: unknown): Fields {
  const metadata = isRecord(interrupt) && isRecord(interrupt.metadata) ? interrupt.metadata : {}
  const binding = metadata[BINDING]
  return isRecord(binding) ? binding : {}
}

function own(metadata: unknown): Fields {
  return isRecord(metadata) && isRecord(metadata.countersign) ? metadata.countersign : {}
}

function theirs(metadata: unknown): Fields {
  return isRecord(metadata) && isRecord(metadata.tanstack) ? metadata.tanstack : {}
}
