import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type EditorResult =
  | { readonly kind: 'saved'; readonly text: string }
  /** An error message. */
  | { readonly kind: 'failed'; readonly message: string }

/** Opens a text in the user's editor ($VISUAL or $EDITOR, parsed by the shell) and waits for it to close. */
export async function openEditor(text: string): Promise<EditorResult> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-edit-'))
  const file = join(folder, 'arguments.json')
  try {
    await writeFile(file, text, { mode: 0o600 })
    const { VISUAL, EDITOR } = process.env
    const command = VISUAL || EDITOR || (process.platform === 'win32' ? 'notepad' : 'vi')
    const { status, error } = run(command, file)
    if (error || status !== 0)
      return {
        kind: 'failed',
        message: `The editor (${command}) ended with an error. Set $EDITOR to another.`,
      }
    return { kind: 'saved', text: await readFile(file, 'utf8') }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The command may have arguments (`code --wait`), so the shell parses it, but not the file name. */
function run(command: string, file: string) {
  const stdio = 'inherit'
  return process.platform === 'win32'
    ? spawnSync(`${command} "${file}"`, { stdio, shell: true })
    : spawnSync('sh', ['-c', `${command} "$1"`, 'editor', file], { stdio })
}
