import { spawn as spawnWithPipes } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type IPty, spawn } from '@lydell/node-pty'
import { bundleForNode } from '../../../scripts/bundle.mjs'
import { screenOf } from './screen.js'

const example = join(import.meta.dirname, '..')

/** The program as it is run, in a pseudo-terminal or between pipes, each time in a new folder. */
export async function buildProgram() {
  const script = await bundleForNode(join(example, 'src/main.ts'), example)
  const parent = await mkdtemp(join(tmpdir(), 'countersign-terminal-'))
  const running = new Set<() => void>()
  const newFolder = async () => join(await mkdtemp(join(parent, 'run-')), 'workspace')

  return {
    newFolder,
    /** An editor that does one replacement in the file it is given. */
    async editor(from: string, to: string): Promise<string> {
      const file = join(await mkdtemp(join(parent, 'editor-')), 'editor.mjs')
      const [wanted, instead] = [JSON.stringify(from), JSON.stringify(to)]
      const lines = [
        `import { readFileSync, writeFileSync } from 'node:fs'`,
        `const file = process.argv[2]`,
        `writeFileSync(file, readFileSync(file, 'utf8').replace(${wanted}, ${instead}))`,
      ]
      await writeFile(file, lines.join('\n'))
      return `"${process.execPath}" "${file}"`
    },
    /** In a pseudo-terminal of 100 columns. Without a folder, `args` have to name the agent. */
    open(
      folder: string | undefined,
      args: readonly string[] = [],
      env: Record<string, string> = {},
    ): Terminal {
      const all = [script.file, ...(folder === undefined ? [] : ['--folder', folder]), ...args]
      const { PATH = '' } = process.env
      const pty = spawn(process.execPath, all, {
        name: 'xterm-256color',
        cols: 100,
        rows: 40,
        env: { PATH, LANG: 'C.UTF-8', TERM: 'xterm-256color', ...env },
      })
      const terminal = openTerminal(pty)
      const kill = () => pty.kill('SIGKILL')
      running.add(kill)
      void terminal.ended.then(() => running.delete(kill))
      return terminal
    },
    /** Between pipes, all of the input at once; `undefined` leaves it open. A reader that `leaves` closes its pipe after the first output. */
    async pipe(args: readonly string[], input: string | undefined, leaves = false) {
      const child = spawnWithPipes(process.execPath, [script.file, ...args])
      const kill = () => void child.kill('SIGKILL')
      running.add(kill)
      let [output, errors] = ['', '']
      child.stdout.on('data', (chunk) => {
        output += chunk
        if (leaves) child.stdout.destroy()
      })
      child.stderr.on('data', (chunk) => {
        errors += chunk
      })
      if (input !== undefined) child.stdin.end(input)
      const [code]: unknown[] = await once(child, 'close')
      running.delete(kill)
      return { code, output, errors }
    },
    async remove() {
      for (const kill of running) kill()
      await script.remove()
      await rm(parent, { recursive: true })
    },
  }
}

export interface Terminal {
  /** What is on the screen now. */
  screen(): string
  /** Resolves when a prompt with these words waits for an answer. */
  asked(words: string): Promise<void>
  /** Resolves when these words are on the screen. */
  shows(words: string): Promise<void>
  /** Types into the prompt that waits, and resolves when the prompt is closed. */
  type(keys: string): Promise<void>
  /** Types without waiting for anything. */
  press(keys: string): void
  /** Resolves with the exit code. */
  readonly ended: Promise<number>
}

export const keys = { enter: '\r', ctrlC: '\x03', ctrlD: '\x04', escape: '\x1b' }

function openTerminal(pty: IPty): Terminal {
  let written = ''
  const waiting = new Set<() => void>()
  const screen = () => screenOf(written)
  const until = (holds: () => boolean, what: string) =>
    new Promise<void>((resolve, reject) => {
      const check = (over = false) => {
        const done = holds()
        if (!done && !over) return
        waiting.delete(check)
        if (done) resolve()
        else reject(new Error(`The program ended before ${what}.\n${screen()}`))
      }
      waiting.add(check)
      void ended.then(() => check(true))
      check()
    })
  const ended = new Promise<number>((resolve) => {
    pty.onExit(({ exitCode }) => resolve(exitCode))
  })
  pty.onData((chunk) => {
    written += chunk
    for (const check of [...waiting]) check()
  })
  const closed = () => screen().match(/^[◇■]/gm)?.length ?? 0

  return {
    screen,
    ended,
    asked: (words) => until(() => screen().includes(`◆  ${words}`), `it asked "${words}"`),
    shows: (words) => until(() => screen().includes(words), `it showed "${words}"`),
    press: (typed) => pty.write(typed),
    async type(typed) {
      const before = closed()
      pty.write(typed)
      await until(() => closed() > before, 'the prompt was closed')
    },
  }
}
