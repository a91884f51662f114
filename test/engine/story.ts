import { ChatClient, type Connection } from '@countersign/client'
import type { UIMessage } from '@countersign/core'
import { type Agent, type AgentOptions, createAgent, memoryLedger, tool } from '@countersign/server'
import { until } from '@countersign/testing'
import { verified } from '@countersign/testing/suites'
import { z } from 'zod'
import { call, calls, says, scriptedModel } from './engine.js'

/** How a story ended, by everything that must not depend on the way the answers took. */
export interface Ending {
  readonly messages: readonly UIMessage[]
  /** What ran, and how often. */
  readonly ran: Readonly<Record<string, readonly unknown[]>>
  /** What the model was given, call by call. */
  readonly modelInput: readonly unknown[]
}

/**
 * One conversation with all that can happen to a call: a safe one, a yes with edits, a no with a reason, and a question that comes only
 * after the first two were answered. `edits: false` leaves the arguments as they are, for ways that carry none.
 */
export async function playStory(
  connect: (agent: Agent) => Connection | Promise<Connection>,
  approvals: AgentOptions['approvals'] = {},
  { edits = true } = {},
): Promise<Ending & { readonly requests: number }> {
  const ran: Record<string, unknown[]> = { search: [], send: [], delete: [] }
  const running = (name: string) => (input: unknown) => {
    ran[name]?.push(input)
    return { did: name }
  }
  const model = scriptedModel([
    calls(
      call('c1', 'search', { q: 'team' }),
      call('c2', 'send', { to: 'tema@example.org' }),
      call('c3', 'delete', { id: 7 }),
    ),
    calls(call('c4', 'send', { to: 'boss@example.org' })),
    says('Done.'),
  ])
  let ids = 0
  const agent = createAgent({
    model,
    warn: () => {},
    approvals: { ledger: memoryLedger(), ...approvals },
    generateId: () => `message-${++ids}`,
    now: () => Date.UTC(2026, 0, 1),
    tools: [
      tool({
        name: 'search',
        description: 'Searches.',
        input: z.object({ q: z.string() }),
        execute: running('search'),
      }),
      tool({
        name: 'send',
        description: 'Sends.',
        input: z.object({ to: z.string() }),
        needsApproval: true,
        allowEdits: true,
        message: 'Send a mail?',
        expiresIn: 'never',
        execute: running('send'),
      }),
      tool({
        name: 'delete',
        description: 'Deletes.',
        input: z.object({ id: z.number() }),
        needsApproval: true,
        scopes: ['once', 'session'],
        message: 'Delete it?',
        expiresIn: 'never',
        execute: running('delete'),
      }),
    ],
  })
  const connection = verified(await connect(agent))
  let requests = 0
  const counting: Connection = {
    ...connection,
    connect(...given) {
      requests++
      return connection.connect(...given)
    },
  }
  const chat = new ChatClient({ connection: counting, now: () => 0 })
  const pending = (toolCallId: string) =>
    chat.getSnapshot().pendingApprovals.find((part) => part.id === toolCallId)?.approval?.id
  const answer = async (toolCallId: string, given: Record<string, unknown>) => {
    await until(chat, () => pending(toolCallId) !== undefined)
    return chat.addToolApprovalResponse({ id: String(pending(toolCallId)), approved: false, ...given })
  }
  const sent = chat.sendMessage('Mail the team and clean up.')
  const first = answer('c2', { approved: true, ...(edits && { input: { to: 'team@example.org' } }) })
  const second = answer('c3', { reason: 'keep it' })
  const third = answer('c4', { approved: true })
  await Promise.all([sent, first, second, third])
  await until(chat, ({ status }) => status === 'ready')
  chat.dispose()
  return {
    messages: comparable(chat.getSnapshot().messages),
    ran,
    modelInput: model.requests.map(({ messages }) => messages),
    requests,
  }
}

/**
 * Messages without what every conversation has of its own: ids, tokens, and the order in which calls ended that were under way at the same
 * time.
 */
function comparable(messages: readonly UIMessage[]): readonly UIMessage[] {
  return messages.map((message, index) => ({
    ...message,
    id: `m${index}`,
    parts: [
      ...message.parts.filter((part) => part.type !== 'tool-result'),
      ...message.parts
        .filter((part) => part.type === 'tool-result')
        .map((part) => ({ ...part, id: 'result' }))
        .sort((one, other) => one.toolCallId.localeCompare(other.toolCallId)),
    ].map((part) => {
      if (part.type !== 'tool-call' || part.approval === undefined) return part
      const { token, sentIn, ...approval } = part.approval
      const { metadata, ...rest } = part
      return { ...rest, approval: { ...approval, id: `of ${part.id}` } }
    }),
  }))
}
