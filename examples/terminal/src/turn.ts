import {
  approvalView,
  type ChatClient,
  type ChatSnapshot,
  type DisplayLimits,
  type ToolCallPart,
} from '@countersign/client'
import { displayText } from '@countersign/core'
import { renderAnswerResult } from './answered.js'
import type { Decide, Request } from './decide.js'

/** The result of one turn. */
export interface Turn {
  readonly failed: boolean
  readonly deniedUnasked: number
}

/** The oldest waiting request that was not shown yet, so that none is shown twice. */
function nextRequest(
  { pendingApprovals }: Pick<ChatSnapshot, 'pendingApprovals'>,
  asked: ReadonlySet<string>,
): Request | undefined {
  for (const [at, part] of pendingApprovals.entries()) {
    const view = approvalView(part)
    if (view?.status !== 'open' || asked.has(view.id)) continue
    const more = pendingApprovals.length - at - 1
    const viewOf: Request['viewOf'] = (edited, limits) => viewWith(part, edited, limits) ?? view
    return { view, viewOf, toolName: part.name, more }
  }
  return undefined
}

/** The request with edited arguments. */
function viewWith(part: ToolCallPart, edited: { input: unknown } | undefined, limits: DisplayLimits) {
  if (!part.approval || !edited) return approvalView(part, limits)
  const { display: _, ...approval } = part.approval
  return approvalView({ ...part, ...edited, approval }, limits)
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
): Promise<Turn> {
  const asked = new Set<string>()
  let deniedUnasked = 0
  await begin()
  await atRest(client)
  for (let next = nextRequest(client.getSnapshot(), asked); next; ) {
    asked.add(next.view.id)
    const decision = await decide(next)
    if (decision.deniedUnasked) deniedUnasked++
    write(`${decision.line}\n`)
    const result = await client.addToolApprovalResponse(decision.response)
    await atRest(client)
    const words = renderAnswerResult(result)
    if (words !== undefined) write(`${words}\n`)
    next = nextRequest(client.getSnapshot(), asked)
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
