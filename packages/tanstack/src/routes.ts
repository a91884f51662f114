import { isRecord, type ResumeEntry, type RunAgentInput } from '@countersign/core'

type Fields = Readonly<Record<string, unknown>>

/** Where TanStack AI stores what its server needs back with the answer, and where it expects it. */
const BINDING = 'tanstack:interruptBinding'
const CONTINUATION = 'tanstack:interruptContinuation'
const PAYLOAD = 'tanstack:interruptPayload'

/**
 * Converts a request for a `chat()` route of TanStack AI: `parentRunId` is the interrupted run, and the
 * reason of a denial goes into the `payload` of the answer.
 */
export function tanstackInput({ resume, ...input }: RunAgentInput): RunAgentInput {
  if (!resume) return input
  const parentRunId = resume.flatMap((entry) => tokenOf(entry) ?? []).at(-1)
  return { ...input, ...(parentRunId !== undefined && { parentRunId }), resume: resume.map(asAnswer) }
}

/** The interrupted run's id was stored as the approval's token, which is opaque to the client and sent back unchanged. */
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
 * Translates the events of one response to the order and terms of AG-UI 1.0; `RUN_FINISHED` may still occur
 * more than once. `begun`: the response continues a run that has begun.
 */
export function createTanstackReader(
  { threadId, runId, resume = [] }: Pick<RunAgentInput, 'threadId' | 'runId' | 'resume'>,
  begun = false,
) {
  const yes = new Set(resume.flatMap(({ interruptId, payload }) => (payload?.approved ? [interruptId] : [])))
  const no = new Set(resume.flatMap(({ interruptId }) => (yes.has(interruptId) ? [] : [interruptId])))

  /** Results of answers arrive before RUN_STARTED, which is then repeated for each turn of the model. */
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

/** Gives a result its own id: it arrives with that of the message that contains the call. */
function asResult(event: Fields, no: ReadonlySet<string>): Fields {
  const { toolCallId } = event
  const failed = theirs(event.metadata).state === 'output-error' && !no.has(`approval_${toolCallId}`)
  const outcome = failed ? { countersign: { outcome: 'error' } } : {}
  const metadata = { ...(isRecord(event.metadata) ? event.metadata : {}), ...outcome }
  return { ...event, messageId: `${toolCallId}-result`, metadata }
}

/** Interrupts that hand back a client tool become pending calls; the others store what their answer must include. */
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

/** What the server forgets about an interrupt that is no tool approval, and needs back with the response. */
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

/** Whether edits are allowed: the schema has one branch for approval and one for denial. */
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
