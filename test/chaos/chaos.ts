import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { seeded } from '../explore/lib/choices.js'
import {
  type Machine,
  readToolLog,
  type ServerConfig,
  type SharedLedger,
  startMachine,
} from '../machines/processes.js'
import { type Fault, startProxy } from '../machines/proxy.js'
import { converse, type EndedCall } from './conversation.js'
import { judge, type Verdict } from './judge.js'

export interface ChaosOptions {
  /** `server.process.ts` as it was built. */
  readonly script: string
  /** For the files of this game. */
  readonly folder: string
  readonly ledger:
    | { readonly kind: 'file' | 'sqlite' | 'stateless' }
    | { readonly kind: 'redis' | 'postgres'; readonly url: string }
  /** How many calls are approved. */
  readonly calls: number
  readonly seed: number
}

export interface ChaosReport extends Verdict {
  readonly kills: number
  /** Connections that were broken on purpose. */
  readonly drops: number
  readonly conversations: number
  readonly seconds: number
}

/** Conversations that are under way at once. */
const ABREAST = 8
/** A server is killed about once for so many calls that have ended. */
const CALLS_PER_KILL = 30
/** Of ten connections, so many break. */
const BROKEN_OF_TEN = 2

type Random = () => number

/**
 * Lets calls be approved by people whose connections break, on two servers that are killed again and again, and judges by the tools'
 * own log what became of them.
 */
export async function playChaos(options: ChaosOptions): Promise<ChaosReport> {
  const began = performance.now()
  const { calls, seed } = options
  const random = seeded(seed)
  const config = await newConfig(options)
  const world = await openWorld(options.script, config, random)
  const ended: EndedCall[] = []
  const conversations = plannedConversations(calls, random)
  const total = conversations.length
  const person = async () => {
    for (let jobs = conversations.shift(); jobs !== undefined; jobs = conversations.shift()) {
      const isShared = options.ledger.kind === 'redis' || options.ledger.kind === 'postgres'
      const live = isShared && random() < 0.5
      for (const call of await converse(world.url, jobs, { random, live })) {
        ended.push(call)
        world.heard()
      }
    }
  }
  try {
    await Promise.all(Array.from({ length: ABREAST }, person))
  } finally {
    await world.close()
  }
  const verdict = judge(calls, ended, await readToolLog(config.log))
  return {
    ...verdict,
    kills: world.kills(),
    drops: world.drops(),
    conversations: total,
    seconds: (performance.now() - began) / 1000,
  }
}

async function newConfig({ ledger, folder }: ChaosOptions): Promise<ServerConfig> {
  const log = join(folder, 'tools.log')
  await writeFile(log, '')
  return { ledger: sharedLedger(ledger, folder), log, toolMs: 20, lease: 1500 }
}

function sharedLedger(ledger: ChaosOptions['ledger'], folder: string): SharedLedger {
  switch (ledger.kind) {
    case 'file':
      return { kind: 'file', path: join(folder, 'ledger.sqlite') }
    case 'sqlite':
      return { kind: 'sqlite', path: join(folder, 'rows.sqlite') }
    case 'redis':
      return { kind: 'redis', url: ledger.url, prefix: `countersign-chaos:${randomUUID()}:` }
    case 'postgres':
      return { kind: 'postgres', url: ledger.url, prefix: `chaos_${randomUUID().slice(0, 8)}_` }
    case 'stateless':
      return { kind: 'stateless' }
    default:
      return ledger satisfies never
  }
}

/** The jobs of each conversation: one to three, all called in one turn. */
function plannedConversations(calls: number, random: Random): string[][] {
  const jobs = Array.from({ length: calls }, (_, index) => `job${index}`)
  const planned: string[][] = []
  while (jobs.length > 0) planned.push(jobs.splice(0, 1 + Math.floor(random() * 3)))
  return planned
}

/** Two servers behind a proxy. Every so many calls one of them is killed, and comes back after a while. */
async function openWorld(script: string, config: ServerConfig, random: Random) {
  const machines: (Machine | undefined)[] = await Promise.all([0, 1].map(() => startMachine(script, config)))
  const restarts = new Set<Promise<void>>()
  let [kills, drops, heard] = [0, 0, 0]
  let nextKill = 1 + Math.floor(random() * CALLS_PER_KILL)

  const proxy = await startProxy(
    () => machines.flatMap((machine) => machine?.url ?? []),
    () => {
      const fault = newFault(random)
      if (fault.kind !== 'none') drops++
      return fault
    },
  )

  async function killOne(): Promise<void> {
    const index = random() < 0.5 ? 0 : 1
    const victim = machines[index]
    if (victim === undefined) return
    kills++
    machines[index] = undefined
    await victim.kill()
    await pause(random() * 200)
    machines[index] = await startMachine(script, config)
  }

  return {
    url: proxy.url,
    kills: () => kills,
    drops: () => drops,
    /** One more call has ended. */
    heard(): void {
      if (++heard < nextKill) return
      nextKill = heard + Math.ceil(random() * 2 * CALLS_PER_KILL)
      // at any moment from now on, not just when a call has ended
      const restart = pause(random() * 60).then(killOne)
      restarts.add(restart)
      void restart.finally(() => restarts.delete(restart))
    },
    async close(): Promise<void> {
      await Promise.allSettled(restarts)
      await proxy.close()
      await Promise.all(machines.map((machine) => machine?.kill()))
    },
  }
}

function newFault(random: Random): Fault {
  if (random() * 10 >= BROKEN_OF_TEN) return { kind: 'none' }
  const kind = random() * 3
  if (kind < 1) return { kind: 'unsent' }
  return kind < 2 ? { kind: 'unanswered' } : { kind: 'cut', after: Math.floor(random() * 4000) }
}
