import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'

/** How far an approved call has come. */
export type Step = 'asked' | 'answered' | 'claimed' | 'started' | 'ran' | 'completed'

export type SharedLedger =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'redis' | 'postgres'; readonly url: string; readonly prefix: string }
  /** The same file by `@countersign/sql`, which compares and swaps. */
  | { readonly kind: 'sqlite'; readonly path: string }
  /** None: what a signed token allows may be repeated. It shows that what these tests count can be otherwise. */
  | { readonly kind: 'stateless' }

export interface ServerConfig {
  readonly ledger: SharedLedger
  /** The tools' own log, which all processes append to. */
  readonly log: string
  /** Milliseconds that a tool takes, at most. */
  readonly toolMs: number
  /** Milliseconds that a claim, or the log of a run, outlives its process. */
  readonly lease: number
  /** The process kills itself the first time it has come this far. */
  readonly dieAt?: Step | undefined
}

export interface Machine {
  readonly url: string
  readonly pid: number | undefined
  readonly ended: Promise<unknown>
  /** Ends it where it stands. Resolves when it is gone. */
  kill(): Promise<unknown>
}

/** Starts a server, built to the file `script`, which reads its configuration as JSON and prints its URL. */
export async function startMachine<Config = ServerConfig>(script: string, config: Config): Promise<Machine> {
  const child = spawn(process.execPath, [script, JSON.stringify(config)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const [line] = await Promise.race([
    once(child.stdout, 'data'),
    ended.then(() => Promise.reject(new Error('The server ended before it listened.'))),
  ])
  const kill = () => {
    child.kill('SIGKILL')
    return ended
  }
  return { url: String(line).trim(), pid: child.pid, ended, kill }
}

/** What a tool wrote down of itself. */
export interface LogLine {
  readonly what: string
  /** The idempotency key of the call: its approval's id. */
  readonly key: string
  readonly job: string
}

export async function readToolLog(log: string): Promise<LogLine[]> {
  const lines = (await readFile(log, 'utf8')).split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    const [what = '', key = '', job = ''] = line.split(' ')
    return { what, key, job }
  })
}
