import { setTimeout as pause } from 'node:timers/promises'
import { ChatClient, fetchServerSentEvents, postAnswers } from '@countersign/client'
import type { ToolCallPart } from '@countersign/core'

/** An approved call, as the person's client knows it in the end. */
export interface EndedCall {
  readonly job: string
  readonly approvalId: string
  readonly end: 'completed' | 'refused' | 'interrupted' | 'lost'
  readonly detail: string
}

export interface Person {
  readonly random: () => number
  /** Over a live channel: the run stays open while the person decides. */
  readonly live: boolean
}

/** How long somebody goes on trying before a call counts as lost. */
const PATIENCE_MS = 60_000

/** One conversation: asks for jobs, approves each call, and tries again after every failure until all of them have ended. */
export async function converse(url: string, jobs: readonly string[], person: Person): Promise<EndedCall[]> {
  const { random, live } = person
  const approved = new Set<string>()
  const chat = new ChatClient({
    connection: live
      ? { ...fetchServerSentEvents(`${url}/live`, { rejoin: true }), ...postAnswers(`${url}/answers`) }
      : fetchServerSentEvents(`${url}/chat`, { rejoin: true }),
    notify: 'sync',
    onWarning: () => {},
    onApprovalRequest: ({ approvalId }) => void pause(random() * 15).then(() => approve(approvalId)),
  })
  const approve = (id: string) => {
    approved.add(id)
    return chat.addToolApprovalResponse({ id, approved: true })
  }
  const calls = () => approvedCalls(chat, approved)
  const ask = (missing: readonly string[]) => chat.sendMessage(JSON.stringify(missing))

  const deadline = Date.now() + PATIENCE_MS
  void ask(jobs)
  while (Date.now() < deadline) {
    await settled(chat, deadline)
    const { error, pendingApprovals } = chat.getSnapshot()
    const missing = jobs.filter((job) => !calls().some((call) => jobOf(call) === job))
    if (error !== undefined || calls().some(isOpen)) {
      await pause(10 + random() * 60)
      void chat.retry()
    } else if (pendingApprovals.length > 0)
      for (const { approval } of pendingApprovals) void approve(approval?.id ?? '')
    else if (missing.length > 0) void ask(missing)
    else break
  }
  chat.dispose()
  return jobs.map((job) =>
    endOf(
      job,
      calls().find((call) => jobOf(call) === job),
    ),
  )
}

/** Resolves when nothing is open. */
function settled(chat: ChatClient, deadline: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      leave()
      resolve()
    }
    const timer = setTimeout(end, deadline - Date.now())
    const leave = chat.subscribe(() => {
      if (!chat.getSnapshot().isLoading) end()
    })
    if (!chat.getSnapshot().isLoading) end()
  })
}

function approvedCalls(chat: ChatClient, approved: ReadonlySet<string>): ToolCallPart[] {
  return chat
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'))
    .filter(({ approval }) => approval !== undefined && approved.has(approval.id))
}

function jobOf({ input }: ToolCallPart): string {
  return typeof input === 'object' && input !== null && 'job' in input ? String(input.job) : ''
}

function isOpen({ state }: ToolCallPart): boolean {
  return state === 'approval-requested' || state === 'approval-responded'
}

function endOf(job: string, call: ToolCallPart | undefined): EndedCall {
  if (call === undefined) return { job, approvalId: '', end: 'lost', detail: 'never asked about' }
  const { state, approval, error } = call
  const ended = (end: EndedCall['end'], detail: string = state): EndedCall => ({
    job,
    approvalId: approval?.id ?? '',
    end,
    detail,
  })
  if (state === 'complete') return ended('completed')
  if (error?.code === 'interrupted') return ended('interrupted')
  if (approval?.problem !== undefined && !isOpen(call)) return ended('refused', approval.problem)
  return ended('lost', `${state} ${error?.code ?? ''} ${error?.message ?? ''}`.trim())
}
