import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ChatClient, fetchServerSentEvents, postAnswers, withGrants } from '@countersign/client'
import type { ToolCallPart } from '@countersign/core'
import { onTestFinished } from 'vitest'
import { readToolLog, type ServerConfig, type SharedLedger, type Step, startMachine } from './processes.js'
import { type Fault, startProxy } from './proxy.js'

/** By which way a person's answer comes: a request of its own, or into the run that is open. */
export type Door = 'request' | 'live'

export interface Bench {
  readonly script: string
  /** Of the Redis that both share. */
  readonly redis?: string | undefined
  /** Of the PostgreSQL that both share, where they share no Redis; else they share a file. */
  readonly postgres?: string | undefined
  /** Where the first and the second process end. */
  readonly dieAt?: readonly [Step | undefined, Step | undefined]
  /** What happens to the first connections, in turn. */
  readonly faults?: readonly Fault[]
  /** See {@link ServerConfig.lease}. Default 30 s, so that a slow machine is not taken for a dead one. */
  readonly lease?: number
}

/** Two processes over one ledger, behind a proxy that takes turns and begins with the first. */
export async function twoMachines({
  script,
  redis,
  postgres,
  dieAt = [undefined, undefined],
  faults = [],
  lease = 30_000,
}: Bench) {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-machines-'))
  const log = join(folder, 'tools.log')
  await writeFile(log, '')
  const ledger: SharedLedger =
    redis !== undefined
      ? { kind: 'redis', url: redis, prefix: `countersign-machines:${randomUUID()}:` }
      : postgres !== undefined
        ? { kind: 'postgres', url: postgres, prefix: `m${randomUUID().slice(0, 8)}_` }
        : { kind: 'file', path: join(folder, 'ledger.sqlite') }
  const config: ServerConfig = { ledger, log, toolMs: 0, lease }
  const [one, other] = await Promise.all(
    dieAt.map((step) => startMachine(script, { ...config, dieAt: step })),
  )
  if (one === undefined || other === undefined) throw new Error('Two processes were to be started.')
  const coming = [...faults]
  const proxy = await startProxy(
    () => [one.url, other.url],
    () => coming.shift() ?? { kind: 'none' },
  )
  onTestFinished(async () => {
    await proxy.close()
    await Promise.all([one.kill(), other.kill()])
    await rm(folder, { recursive: true, force: true })
  })

  /** Names the server of each request so far. */
  const served = () => proxy.served.map((url) => (url === one.url ? 'one' : 'other'))

  function chat(door: Door = 'request', user = 'ann', threadId = 'thread') {
    const headers = { 'x-user': user }
    const route = door === 'live' ? 'live' : 'chat'
    const client = new ChatClient({
      connection: withGrants(
        {
          ...fetchServerSentEvents(`${proxy.url}/${route}`, { rejoin: true, headers }),
          ...(door === 'live' && postAnswers(`${proxy.url}/answers`, { headers })),
        },
        `${proxy.url}/grants`,
        { headers },
      ),
      threadId,
      notify: 'sync',
      onWarning: () => {},
    })
    onTestFinished(client.dispose)
    return client
  }

  const ran = async (what: 'start' | 'end') =>
    (await readToolLog(log)).filter((line) => line.what === what).length
  return { one, other, proxy, served, chat, starts: () => ran('start'), ends: () => ran('end') }
}

/** What a message has to say for the model to call for these jobs. */
export const please = (...jobs: readonly string[]): string => JSON.stringify(jobs)

export function callsOf(chat: ChatClient): ToolCallPart[] {
  return chat.getSnapshot().messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'))
}

/** Resolves once it holds; the test's own time limits the waiting. */
export function until(
  chat: ChatClient,
  holds: (snapshot: ReturnType<ChatClient['getSnapshot']>) => boolean,
): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (!holds(chat.getSnapshot())) return
      leave()
      resolve()
    }
    const leave = chat.subscribe(check)
    check()
  })
}

/** Sends and answers again, as a person would, until nothing is open and nothing failed. */
export async function persist(chat: ChatClient, act: () => void): Promise<void> {
  act()
  for (;;) {
    await until(chat, ({ isLoading }) => !isLoading)
    const { error } = chat.getSnapshot()
    const unsent = callsOf(chat).some(({ state }) => state === 'approval-responded')
    if (error === undefined && !unsent) return
    await pause(50)
    void chat.retry()
  }
}

/** Approves what is asked. */
export function approve(chat: ChatClient, scope: 'once' | 'session' = 'once'): void {
  for (const { approval } of chat.getSnapshot().pendingApprovals)
    void chat.addToolApprovalResponse({ id: approval?.id ?? '', approved: true, scope })
}
