import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ledger, MandateOffer } from '@countersign/server'
import { createAgent, scriptedModel, tool } from '@countersign/server'
import * as z from 'zod'
import type { SharedLedger } from '../machines/processes.js'
import { randomFrom } from '../random.js'

export interface WorkerConfig {
  readonly ledger: SharedLedger
  /** What started and what was given back; all processes append to it. */
  readonly log: string
  readonly seed: number
  readonly workers: number
  readonly calls: number
}

export interface MandateGame extends Omit<WorkerConfig, 'log' | 'workers'> {
  /** `mandates.process.ts` as it was built. */
  readonly script: string
  readonly folder: string
  /** The same storage, opened here. */
  readonly opened: Ledger
  /** A process is killed about once for so many calls; 0: never. */
  readonly callsPerKill: number
}

const PROCESSES = 2
const WORKERS = 32
const MAX_AMOUNT = 20

/** One mandate per conversation: `budget` has a budget, `uses` a number of uses. Both run out before the calls do. */
let budget = 0
let uses = 0

/** What `pay` offers. In the workers nothing is offered, because nothing is asked. */
export function offerOf(): readonly MandateOffer[] {
  return [
    {
      id: 'budget',
      label: 'Budget',
      where: [],
      budget: { field: 'amount', total: budget || 1, unit: 'EUR' },
    },
    { id: 'uses', label: 'Uses', where: [], uses: uses || 1 },
  ]
}

/** Gives both mandates as a user does, by answering an approval request, and returns what they hold before any call. */
async function giveMandates(ledger: Ledger): Promise<void> {
  const input = z.object({ n: z.string(), amount: z.number() })
  const pay = tool({
    name: 'pay',
    description: 'Pays',
    input,
    needsApproval: true,
    mandates: offerOf,
    execute: () => 'paid',
  })
  for (const id of ['budget', 'uses']) {
    const args = JSON.stringify({ n: `first_${id}`, amount: 0 })
    const agent = createAgent({
      model: scriptedModel([
        [
          { type: 'tool-call', id: `first_${id}`, name: 'pay', arguments: args },
          { type: 'finish', reason: 'tool_calls' },
        ],
        [{ type: 'finish', reason: 'stop' }],
      ]),
      tools: [pay],
      approvals: { secret: 'countersign-test-secret-0123456789abcdef', ledger },
      warn: () => {},
    })
    const context = { subject: 'ann' }
    const asked = await agent.generate(
      { threadId: id, runId: '1', messages: [{ id: 'u', role: 'user', content: 'go' }] },
      { context },
    )
    const history = asked.events.flatMap((event) =>
      event.type === 'CUSTOM' && event.name === 'approval-requested' ? [event.value] : [],
    )
    const [{ approval }] = history as [{ approval: { id: string; token: string } }]
    const call = { id: `first_${id}`, type: 'function' as const, function: { name: 'pay', arguments: args } }
    await agent.generate(
      {
        ...{ threadId: id, runId: '2' },
        messages: [
          { id: 'u', role: 'user', content: 'go' },
          {
            id: 'a',
            role: 'assistant',
            toolCalls: [{ ...call, metadata: { countersign: { token: approval.token } } }],
          },
        ],
        resume: [{ interruptId: approval.id, status: 'resolved', payload: { approved: true, mandate: id } }],
      },
      { context },
    )
  }
}

/** Lets 64 workers on two processes make calls, kills a process now and then, and counts from the tool's own log. */
export async function playMandates(game: MandateGame) {
  const { script, folder, opened, calls, callsPerKill, seed } = game
  const random = randomFrom(seed)
  budget = Math.round(calls * 2)
  uses = Math.round(calls / 4)
  await giveMandates(opened)
  const log = join(folder, 'mandates.log')
  await writeFile(log, '')
  let kills = 0
  let ended = 0
  let nextKill = callsPerKill === 0 ? Number.POSITIVE_INFINITY : 1 + Math.floor(random() * callsPerKill)
  const errors: string[] = []

  /** One of the processes; when it is killed, another one takes its place. */
  async function keepWorking(slot: number): Promise<void> {
    for (let left = Math.ceil(calls / PROCESSES); left > 0; ) {
      const config: WorkerConfig = {
        ledger: game.ledger,
        log,
        seed: seed * 100 + slot + kills * 7,
        workers: WORKERS,
        calls: left,
      }
      const child = spawn(process.execPath, [script, JSON.stringify(config)])
      child.stderr.on('data', (text) => void errors.push(String(text)))
      child.stdout.on('data', (dots: Buffer) => {
        left -= dots.length
        ended += dots.length
        if (ended < nextKill || left <= 0) return
        nextKill = ended + Math.ceil(random() * 2 * callsPerKill)
        if (child.kill('SIGKILL')) kills++
      })
      const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
        child.once('close', (...end) => resolve(end)),
      )
      if (signal === null && code !== 0) throw new Error(`A worker ended with ${code}: ${errors.join('')}`)
    }
  }
  await Promise.all(Array.from({ length: PROCESSES }, (_, slot) => keepWorking(slot)))

  const lines = (await readFile(log, 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' '))
  const starts = lines.filter(([what]) => what === 'start')
  const of = (thread: string) => starts.filter(([, where]) => where === thread)
  // In tenths, which are exact.
  const paid = of('budget').reduce((sum, [, , , amount]) => sum + Math.round(Number(amount) * 10), 0) / 10
  const grants = await opened.list('ann')
  const terms = (id: string) => grants.find(({ threadId }) => threadId === id)?.terms
  return {
    ...{ kills, budget, uses, paid },
    started: starts.length,
    twice: starts.length - new Set(starts.map(([, , n]) => n)).size,
    /** The call that the mandate was chosen for counts as well. */
    counted: of('uses').length + 1,
    returned: lines.filter(([what]) => what === 'returned').length,
    spent: terms('budget')?.spent,
    /** Absent once all uses are gone. */
    used: terms('uses')?.used ?? uses,
    /** The most that killed workers can have debited without starting their call. */
    lostAtMost: { amount: kills * WORKERS * MAX_AMOUNT, uses: kills * WORKERS },
  }
}
