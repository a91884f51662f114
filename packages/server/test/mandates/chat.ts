// One user's conversation with an agent that can pay invoices.
import type { Message } from '@countersign/core'
import type { AgentOptions, AuditEntry, Ledger, MandateOffer, RunContext } from '@countersign/server'
import { memoryLedger } from '@countersign/server'
import * as z from 'zod'
import {
  answer,
  call,
  collect,
  counted,
  fold,
  input,
  requests,
  results,
  say,
  testAgent,
  user,
} from '../support.js'

const schema = z.looseObject({ to: z.string(), amount: z.number(), currency: z.string() })

/** What `pay` offers, unless a test says otherwise. */
export const offers: readonly MandateOffer[] = [
  {
    id: 'acme',
    label: 'Pay Acme up to 200 EUR in total, three times',
    where: [{ field: 'to', is: 'acme' }],
    uses: 3,
    expiresIn: 3600,
    budget: { field: 'amount', total: 200, unit: 'EUR', unitField: 'currency' },
  },
  { id: 'small', label: 'Pay up to 10', where: [{ field: 'amount', atMost: 10 }] },
  { id: 'never', label: 'Never pay Mallory', where: [{ field: 'to', is: 'mallory' }], decide: 'deny' },
]

export const bill = (amount: unknown = 50, to = 'acme', currency = 'EUR') => ({ to, amount, currency })

/** Ids of calls are unique, as from most models. */
let calls = 0

type ToolChanges = Parameters<typeof counted>[1]

export interface World {
  readonly ledger?: Ledger
  readonly now?: () => number
  readonly approvals?: AgentOptions['approvals']
  readonly tool?: ToolChanges
  readonly context?: RunContext
  readonly warn?: AgentOptions['warn']
}

export function openChat({ ledger, now, approvals, tool, context = { subject: 'ann' }, warn }: World = {}) {
  const pay = counted('pay', {
    needsApproval: true,
    input: schema,
    mandates: () => offers,
    ...tool,
  } as ToolChanges)
  const audited: AuditEntry[] = []
  let proposed: readonly unknown[] = []
  const { agent, model } = testAgent(
    ({ messages }) => {
      if (messages.at(-1)?.role !== 'user') return say('done')
      return call(...proposed.map((args) => [`c${++calls}`, 'pay', args] as const))
    },
    {
      tools: [pay.tool],
      ...(now && { now }),
      ...(warn && { warn }),
      approvals: {
        ledger: ledger ?? memoryLedger(now ? { now } : {}),
        onAudit: (entry) => void audited.push(entry),
        ...approvals,
      },
    },
  )
  let history: readonly Message[] = []
  const seen = async (events: Awaited<ReturnType<typeof collect>>, before: readonly Message[]) => {
    history = fold(before, events)
    const decided = events.flatMap((event) =>
      event.type === 'TOOL_CALL_RESULT' ? [Object(event.metadata?.countersign).decided] : [],
    )
    return { events, asked: requests(events), results: results(events), decided }
  }
  return {
    agent,
    model,
    audited,
    runs: pay.runs,
    history: () => history,
    list: () => agent.grants.list('ann'),
    /** The user says something, and the model makes these calls. */
    async propose(args: readonly unknown[], more: { threadId?: string; context?: RunContext } = {}) {
      proposed = args
      const messages = [...history, user('go')]
      const given = input(messages, { threadId: more.threadId ?? 'thread' })
      return seen(await collect(agent, given, { context: more.context ?? context }), messages)
    },
    /** The user answers every request that is asked. */
    async reply(
      { asked }: { readonly asked: readonly Parameters<typeof answer>[0][] },
      payload: Record<string, unknown>,
      more: { context?: RunContext } = {},
    ) {
      const resume = asked.map((one) => answer(one, payload))
      return seen(
        await collect(agent, input(history, { resume }), { context: more.context ?? context }),
        history,
      )
    },
  }
}
