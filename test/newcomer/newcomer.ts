import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Block, blocksOf } from '../docs/markdown.js'

export const frameworks = ['react', 'vue', 'svelte', 'solid'] as const
export type Framework = (typeof frameworks)[number]

/** Somebody who does what a page says, in a folder of their own, step by step. */
export interface Newcomer {
  /** Where the page's commands have led. */
  readonly folder: string
  /** Types the commands of a block, one after another. */
  type(block: Block): Promise<string>
  /** Types the one command of a block that goes on running; resolves once it has printed what is looked for. */
  leaveRunning(block: Block, found: RegExp): Promise<string>
  /** Saves the files that a page shows for a framework. */
  save(page: string, framework: Framework): void
  leave(): Promise<void>
}

/** Installing is quiet, and from the cache of npm where that has it. */
const quietly = {
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
  npm_config_prefer_offline: 'true',
  npm_config_ignore_scripts: 'true',
  NO_COLOR: '1',
}

export function newcomer(env: Readonly<Record<string, string>>): Newcomer {
  const home = mkdtempSync(join(tmpdir(), 'countersign-newcomer-'))
  const running: ChildProcess[] = []
  let folder = home

  function start(line: string): ChildProcess {
    const [command = '', ...args] = line.split(' ')
    const options = { cwd: folder, env: { ...environment(), ...quietly, ...env }, detached: true }
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    running.push(child)
    return child
  }

  async function command(line: string): Promise<string> {
    const [name = '', argument = ''] = line.split(' ')
    if (name === 'mkdir') mkdirSync(join(folder, argument))
    else if (name === 'cd') folder = join(folder, argument)
    else return finished(line, start(line))
    return ''
  }

  return {
    get folder() {
      return folder
    },
    async type({ code }) {
      let said = ''
      for (const line of code.trim().split('\n')) said += await command(line)
      return said
    },
    async leaveRunning({ code }, found) {
      return printed(start(code.trim()), found)
    },
    save(page, framework) {
      for (const { file: shown = '', code } of blocksOf(page)) {
        const file = fileFor(shown, framework)
        if (file === undefined) continue
        mkdirSync(dirname(join(folder, file)), { recursive: true })
        writeFileSync(join(folder, file), code)
      }
    },
    async leave() {
      await Promise.all(running.map(ended))
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** Where a file goes: its path without the folder that says for which framework; `undefined` for another's, or none. */
function fileFor(file: string, framework: Framework): string | undefined {
  const of = frameworks.find((one) => file.startsWith(`${one}/`))
  if (of === undefined) return file === '' ? undefined : file
  return of === framework ? file.slice(of.length + 1) : undefined
}

/** As of a shell that has nothing to do with this workspace or its test runner. */
function environment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(npm_(?!config_)|VITEST|NODE_ENV$|TEST$)/i.test(name),
  )
  return Object.fromEntries(own)
}

async function finished(line: string, child: ChildProcess): Promise<string> {
  const said = listen(child)
  const [status] = await once(child, 'close')
  if (status !== 0) throw new Error(`${line} ended with ${status}:\n${said()}`)
  return said()
}

async function printed(child: ChildProcess, found: RegExp): Promise<string> {
  const said = listen(child)
  return new Promise((resolve, reject) => {
    const look = () => {
      const [match] = found.exec(said()) ?? []
      if (match !== undefined) resolve(match)
    }
    child.stdout?.on('data', look)
    child.stderr?.on('data', look)
    child.once('close', (status) => reject(new Error(`It ended with ${status}:\n${said()}`)))
  })
}

function listen(child: ChildProcess): () => string {
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said += chunk))
  return () => said
}

/** Ends what still runs, with what it has started itself. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const closed = once(child, 'close')
  process.kill(-child.pid)
  await closed
}
