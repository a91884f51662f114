import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { buildProgram, keys, type Terminal } from './program.js'

const program = await buildProgram()
afterAll(program.remove)

const { enter, ctrlC, ctrlD } = keys
const YOU = 'You'

/** A conversation in a new folder that has come to a request. */
async function asked(message: string, question: string, env: Record<string, string> = {}) {
  const folder = await program.newFolder()
  const terminal = program.open(folder, [], env)
  await say(terminal, message)
  await terminal.asked(question)
  return {
    terminal,
    exists: (path: string) => existsSync(join(folder, path)),
    read: (path: string) => readFile(join(folder, path), 'utf8'),
    write: (path: string, text: string) => writeFile(join(folder, path), text),
  }
}

async function say(terminal: Terminal, message: string): Promise<void> {
  await terminal.asked(YOU)
  await terminal.type(message + enter)
}

/** Waits for the next message to be asked for, and leaves. */
async function leave(terminal: Terminal): Promise<void> {
  await terminal.asked(YOU)
  terminal.press(ctrlD)
  expect(await terminal.ended).toBe(0)
}

const RENAME = 'Rename todo.md to tasks.md'
const DELETE = 'Delete reports/budget.csv'
const ALL = '[y]es / [s]ession / [n]o'
const TWO = '[y]es / [n]o'

test('E.14 S3.102 S3.103 S3.105 y: warning, tool, arguments, message and question are shown, the tool runs and the agent goes on', async () => {
  const { terminal, exists } = await asked(RENAME, ALL)
  for (const words of ['!! Your approval is needed', 'move_file', '"from": "todo.md"', 'This moves todo.md'])
    expect(terminal.screen()).toContain(words)
  expect(exists('todo.md')).toBe(true)
  await terminal.type(`y${enter}`)
  await terminal.shows('Moved todo.md to tasks.md.')
  expect(terminal.screen()).toContain('Approved once.')
  expect([exists('todo.md'), exists('tasks.md')]).toEqual([false, true])
  // once: the next call of the tool asks again
  await say(terminal, 'Rename tasks.md to todo.md')
  await terminal.asked(ALL)
  await terminal.type(`n${enter}`)
  await leave(terminal)
  expect([exists('todo.md'), exists('tasks.md')]).toEqual([false, true])
})

test('E.14 S3.103 s: the tool runs, and its next call runs without asking', async () => {
  const { terminal, exists } = await asked(RENAME, ALL)
  await terminal.type(`s${enter}`)
  await terminal.shows('Approved for this session.')
  await terminal.shows('Moved todo.md to tasks.md.')
  await say(terminal, 'Rename notes.txt to week.txt')
  await terminal.shows('Moved notes.txt to week.txt.')
  expect(terminal.screen().split('!! Your approval').length - 1).toBe(1)
  await leave(terminal)
  expect([exists('tasks.md'), exists('week.txt'), exists('notes.txt')]).toEqual([true, true, false])
})

test('E.14 S3.103 n: the tool does not run, and the agent is told', async () => {
  const { terminal, exists } = await asked(DELETE, TWO)
  await terminal.type(`n${enter}`)
  await terminal.shows('Kept reports/budget.csv, as you decided.')
  await leave(terminal)
  expect(exists('reports/budget.csv')).toBe(true)
})

test('S3.104 upper case and blanks around the letter are accepted', async () => {
  const { terminal, exists } = await asked(DELETE, TWO)
  await terminal.type(`  Y ${enter}`)
  await terminal.shows('Approved once.')
  await leave(terminal)
  expect(exists('reports/budget.csv')).toBe(false)
})

const denials = [
  ['E.14 S3.103 EOF', ctrlD, 'Denied: the input ended.'],
  ['E.14 S3.103 EOF behind a letter', `y${ctrlD}`, 'Denied: the input ended.'],
  ['E.14 S3.103 Ctrl-C', ctrlC, 'Denied: Ctrl-C.'],
  ['S3.103 Escape', keys.escape, 'Denied: Escape.'],
  ['S3.103 an empty line', enter, 'Denied: an empty line.'],
  ['S3.103 a word that is no answer', `ok${enter}`, 'Denied: not one of the answers.'],
  ['S3.103 s where it is not offered', `s${enter}`, 'Denied: not one of the answers.'],
] as const

for (const [name, typed, words] of denials) {
  test(`${name} denies, and the conversation goes on`, async () => {
    const { terminal, exists } = await asked(DELETE, TWO)
    await terminal.type(typed)
    await terminal.shows(words)
    await terminal.shows('Kept reports/budget.csv, as you decided.')
    await leave(terminal)
    expect(exists('reports/budget.csv')).toBe(true)
  })
}

test('E.14 edit: what was changed in $EDITOR is shown again, and only a yes to that runs', async () => {
  const EDITOR = await program.editor('noon', 'one')
  const { terminal, exists, read } = await asked('Write "Back at noon." to door.txt', `${ALL} / [e]dit`, {
    EDITOR,
  })
  await terminal.type(`e${enter}`)
  await terminal.shows('"content": "Back at one."')
  await terminal.asked(ALL)
  expect(exists('door.txt')).toBe(false)
  await terminal.type(`y${enter}`)
  await terminal.shows('Approved once, with your changes.')
  await leave(terminal)
  expect(await read('door.txt')).toBe('Back at one.')
})

test('E.14 edit, then n: nothing is written', async () => {
  const EDITOR = await program.editor('noon', 'one')
  const { terminal, exists } = await asked('Write "Back at noon." to door.txt', ALL, { EDITOR })
  await terminal.type(`e${enter}`)
  await terminal.shows('Back at one.')
  await terminal.asked(ALL)
  await terminal.type(`n${enter}`)
  await leave(terminal)
  expect(exists('door.txt')).toBe(false)
})

test('E.14 edit: what cannot be used, and an editor that fails, change nothing and ask again', async () => {
  const EDITOR = await program.editor('}', '')
  const broken = await asked('Write "Back at noon." to door.txt', ALL, { EDITOR })
  await broken.terminal.type(`e${enter}`)
  await broken.terminal.shows('What you saved is not JSON. Nothing was changed.')
  await broken.terminal.asked(ALL)
  await broken.terminal.type(`y${enter}`)
  await leave(broken.terminal)
  expect(await broken.read('door.txt')).toBe('Back at noon.')

  const failing = await asked('Write "Back at noon." to door.txt', ALL, { EDITOR: 'false' })
  await failing.terminal.type(`e${enter}`)
  await failing.terminal.shows('The editor (false) ended with an error.')
  await failing.terminal.asked(ALL)
  await failing.terminal.type(`n${enter}`)
  await leave(failing.terminal)
  expect(failing.exists('door.txt')).toBe(false)
})

test('S3.107 several requests are asked in order, each for itself', async () => {
  const { terminal, exists } = await asked('Tidy up the logs', TWO)
  expect(terminal.screen()).toContain('(2 more after this)')
  for (const answer of ['y', 'n', 'y']) {
    await terminal.asked(TWO)
    await terminal.type(answer + enter)
  }
  await terminal.shows('Kept logs/app.3.log, as you decided.')
  expect(terminal.screen().split('!! Your approval').length - 1).toBe(3)
  await leave(terminal)
  expect(['app.2.log', 'app.3.log', 'import-debug.log'].map((log) => exists(`logs/${log}`))).toEqual([
    false,
    true,
    false,
  ])
})

test('S3.103 what was typed before the request was shown answers nothing, and an Enter behind it denies', async () => {
  const folder = await program.newFolder()
  const terminal = program.open(folder)
  await terminal.asked(YOU)
  terminal.press(`${DELETE}${enter}y${enter}`)
  await terminal.shows('Deleting')
  terminal.press('y')
  await terminal.asked(TWO)
  await terminal.type(enter)
  await terminal.shows('Denied: an empty line.')
  await leave(terminal)
  expect(existsSync(join(folder, 'reports/budget.csv'))).toBe(true)
})

test('Ctrl-C stops what the agent says, and at the prompt it ends the program with 130', async () => {
  const terminal = program.open(await program.newFolder())
  await say(terminal, 'help')
  await terminal.shows('I am the demo')
  terminal.press(ctrlC)
  await terminal.shows('Stopped.')
  await terminal.asked(YOU)
  terminal.press(ctrlC)
  expect(await terminal.ended).toBe(130)
})

test('S3.106 in a terminal --yes-to has no effect: the user is asked', async () => {
  const folder = await program.newFolder()
  const terminal = program.open(folder, ['--yes-to', 'delete_file', '--once', DELETE])
  await terminal.asked(TWO)
  await terminal.type(enter)
  expect(await terminal.ended).toBe(0)
  expect(existsSync(join(folder, 'reports/budget.csv'))).toBe(true)
})

test('V15 V16 a file that changes before it is deleted is kept, and the prompt comes again with what changed', async () => {
  const { terminal, exists, write } = await asked(DELETE, TWO)
  expect(terminal.screen()).toContain('crane survey,15000,21200')
  await write('reports/budget.csv', 'item,planned,spent\ntugs,1,2\n')
  await terminal.type(`y${enter}`)
  await terminal.shows('Changed since you looked. Nothing has run.')
  await terminal.shows('* tugs,1,2')
  expect(exists('reports/budget.csv')).toBe(true)
  await terminal.asked(TWO)
  await terminal.type(`y${enter}`)
  await terminal.shows('Deleted reports/budget.csv (28 bytes).')
  await leave(terminal)
})

test('V16 an edit is shown with its own preview; one that the server refuses changes nothing', async () => {
  const EDITOR = await program.editor('door.txt', '')
  const { terminal, exists } = await asked('Write "Back at noon." to door.txt', ALL, { EDITOR })
  await terminal.type(`e${enter}`)
  await terminal.shows('The changes cannot be previewed')
  await terminal.asked(ALL)
  await terminal.type(`n${enter}`)
  await leave(terminal)
  expect(exists('door.txt')).toBe(false)
})

test('V16 a mandate is chosen by its number, listed with its use, and revoked', async () => {
  const { terminal, read } = await asked('pay 120 EUR to Acme', '[y]es / [n]o / [1] / [2]')
  await terminal.shows('1  Pay Acme up to 200 EUR in total, for a day (200 EUR in total, until')
  await terminal.type(`1${enter}`)
  await terminal.shows('Approved, and more: Pay Acme up to 200 EUR in total, for a day.')
  await terminal.shows('Paid 120 EUR to Acme.')
  await say(terminal, 'pay 30 EUR to Acme')
  await terminal.shows('Paid 30 EUR to Acme.')
  await say(terminal, '/standing')
  await terminal.shows('1  Pay Acme up to 200 EUR in total, for a day (used 2 times, 150 of 200 EUR spent')
  await say(terminal, '/revoke 1')
  await terminal.shows('Revoked: Pay Acme up to 200 EUR in total, for a day')
  await say(terminal, 'pay 1 EUR to Acme')
  await terminal.asked('[y]es / [n]o / [1] / [2]')
  await terminal.type(`n${enter}`)
  await leave(terminal)
  expect((await read('payments.csv')).split('\n')).toHaveLength(3)
})

test('E.14 the transcript of a session in the documentation is what the program shows', async () => {
  const folder = await program.newFolder()
  const EDITOR = await program.editor('noon', 'one')
  const terminal = program.open(folder, [], { EDITOR })
  const answers = async (question: string, typed: string) => {
    await terminal.asked(question)
    await terminal.type(typed + enter)
  }
  await say(terminal, DELETE)
  await answers(TWO, 'n')
  await say(terminal, 'Write "Back at noon." to door.txt')
  await answers(ALL, 'e')
  await answers(ALL, 'y')
  await say(terminal, `${RENAME}, then rename tasks.md to done.md`)
  await answers(ALL, 's')
  await say(terminal, '/quit')
  expect(await terminal.ended).toBe(0)
  const changed = /\d{4}-\d\d-\d\d [\d:.]+ UTC/g
  const screen = terminal
    .screen()
    .replaceAll(folder, '<folder>')
    .replace(changed, '2026-01-15 09:30:00.000 UTC')
  const shown = `${screen.trimEnd()}\n`
  const kept = join(import.meta.dirname, '../../../docs/terminal-transcript.txt')
  if (process.env.RECORD === '1') await writeFile(kept, shown)
  expect(shown).toBe(await readFile(kept, 'utf8'))
  expect(existsSync(join(folder, 'done.md'))).toBe(true)
})
