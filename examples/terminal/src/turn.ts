import {
  type AnswerResult,
  approvalView,
  type ChatClient,
  type ChatSnapshot,
  type DisplayLimits,
  type EditedPreview,
  nextStep,
  previewView,
  type ToolCallPart,
} from '@countersign/client'
import { displayText } from '@countersign/core'
import type { Decide, EditedCall, Request } from './decide.js'

/** The result of one turn. */
export interface Turn {
  readonly failed: boolean
  readonly deniedUnasked: number
}

/** Asks the server what edited arguments of an open request would do. */
export type PreviewEdits = (edits: { id: string; input: unknown }) => Promise<EditedPreview>

/** The oldest waiting request that was not shown yet, so that none is shown twice. */
function nextRequest(
  { pendingApprovals }: Pick<ChatSnapshot, 'pendingApprovals'>,
  asked: ReadonlySet<string>,
  previewEdits: PreviewEdits | undefined,
): Request | undefined {
  for (const [at, part] of pendingApprovals.entries()) {
    const view = approvalView(part, { preview: previewView })
    if (view?.status !== 'open' || asked.has(view.id)) continue
    const more = pendingApprovals.length - at - 1
    const viewOf: Request['viewOf'] = (edited, limits) => viewWith(part, edited, limits) ?? view
    const { id, preview } = part.approval
    const ofEdits = preview === undefined ? undefined : previewEdits
    return {
      ...{ view, viewOf, toolName: part.name, more },
      previewEdits: ofEdits && ((input) => ofEdits({ id, input })),
    }
  }
  return undefined
}

/** The request with edited arguments. */
function viewWith(part: ToolCallPart, call: EditedCall | undefined, limits: DisplayLimits) {
  const options = { ...limits, preview: previewView }
  if (!part.approval || !call) return approvalView(part, options)
  const { display, preview, previous, ...approval } = part.approval
  const { input, edited } = call
  return approvalView({ ...part, input, approval: { ...approval, preview: edited?.preview } }, options)
}

/**
 * One turn: starts it (with a message or a retry), then has every request decided, one after the other, until
 * the agent is done. A continuation may contain new requests.
 */
export async function takeTurn(
  client: ChatClient,
  begin: () => Promise<unknown>,
  decide: Decide,
  write: (text: string) => void,
  previewEdits?: PreviewEdits,
): Promise<Turn> {
  const asked = new Set<string>()
  let deniedUnasked = 0
  await begin()
  await atRest(client)
  for (let next = nextRequest(client.getSnapshot(), asked, previewEdits); next; ) {
    asked.add(next.view.id)
    const decision = await decide(next)
    if (decision.deniedUnasked) deniedUnasked++
    write(`${decision.line}\n`)
    const result = await client.addToolApprovalResponse(decision.response)
    await atRest(client)
    const words = effectOf(result)
    if (words !== undefined) write(`${words}\n`)
    next = nextRequest(client.getSnapshot(), asked, previewEdits)
  }
  const { error } = client.getSnapshot()
  if (error) write(`Error: ${displayText(error.message).text}\n`)
  return { failed: error !== undefined, deniedUnasked }
}

/** Resolves when no run is open. */
function atRest(client: ChatClient): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (client.getSnapshot().isLoading) return
      leave()
      resolve()
    }
    const leave = client.subscribe(check)
    check()
  })
}

/** What to tell a user whose answer had no effect; `undefined` if it had. The error of a run is shown once, at the end of the turn. */
function effectOf(result: AnswerResult): string | undefined {
  const step = result.status === 'failed' ? undefined : nextStep(result)
  const reason = result.status === 'refused' ? result.reason : undefined
  if (step === undefined || reason === undefined) return step?.message
  return `${step.message} ${displayText(reason, { multiline: false, maxLength: 300 }).text}`
}
