import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ChatClient, stream } from '@countersign/client'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { demoAgent } from '../src/agent.js'
import { fillOnce } from '../src/samples.js'

let parent: string
let workspace: string
const file = (path: string) => join(workspace, path)
const read = (path: string) => readFile(file(path), 'utf8')

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'countersign-tools-'))
  workspace = join(parent, 'workspace')
  await fillOnce(workspace, Date.now())
})
afterEach(() => rm(parent, { recursive: true }))

/** A conversation with the demo's planner and its tools. */
async function open() {
  const agent = await demoAgent({ workspace, state: parent, delay: 0 })
  const context = { subject: 'single-user' }
  const client = new ChatClient({
    connection: stream((input, { signal }) => agent.run(input, { signal, context })),
  })
  const atRest = async () => {
    await expect.poll(() => client.getSnapshot().isLoading).toBe(false)
    return client.getSnapshot().pendingApprovals
  }
  return {
    grants: () => agent.grants.list('single-user', client.threadId),
    /** The open request after a message, or undefined. */
    ask: async (text: string) => {
      await client.sendMessage(text)
      return (await atRest())[0]?.approval
    },
    answer: async (more: { mandate?: string } = {}) => {
      const [part] = await atRest()
      await client.addToolApprovalResponse({ id: part?.approval.id ?? '', approved: true, ...more })
      return (await atRest())[0]?.approval
    },
    said: () =>
      client
        .getSnapshot()
        .messages.flatMap(({ parts }) => parts)
        .flatMap((part) => (part.type === 'text' ? [part.text] : []))
        .at(-1),
  }
}

test('V14 delete_file shows what would go: size, time of the last change and the first lines', async () => {
  const chat = await open()
  const asked = await chat.ask('Delete logs/app.2.log')
  expect(asked?.preview).toMatchObject({
    kind: 'list',
    total: expect.stringMatching(/^logs\/app\.2\.log: \d+ bytes, last changed \d{4}-.* UTC$/),
    items: [expect.stringContaining('started'), expect.stringContaining('timeout'), expect.any(String)],
  })
  await chat.answer()
  expect(existsSync(file('logs/app.2.log'))).toBe(false)
})

test('V15 a file that changes before it is deleted is kept, and the user is asked again with the one before', async () => {
  const chat = await open()
  const asked = await chat.ask('Delete todo.md')
  await writeFile(file('todo.md'), 'something else\n')
  const again = await chat.answer()
  expect(existsSync(file('todo.md'))).toBe(true)
  expect(again?.id).not.toBe(asked?.id)
  expect(again?.previous).toEqual(asked?.preview)
  expect(again?.preview).toMatchObject({ items: ['something else'] })
  expect(await chat.answer()).toBeUndefined()
  expect(existsSync(file('todo.md'))).toBe(false)
})

test('V14 write_file and move_file show a diff', async () => {
  const chat = await open()
  const before = await read('todo.md')
  expect((await chat.ask('write "all done" to todo.md'))?.preview).toEqual({
    kind: 'diff',
    name: 'todo.md',
    before,
    after: 'all done',
  })
  await chat.answer()
  expect(await read('todo.md')).toBe('all done')
  expect((await chat.ask('write "hi" to new.txt'))?.preview).toMatchObject({
    name: 'new.txt (new file)',
    before: '',
  })
  expect((await chat.ask('rename todo.md to done.md'))?.preview).toEqual({
    kind: 'table',
    total: 'Moves a file of 8 bytes',
    columns: ['From', 'To'],
    rows: [['todo.md', 'done.md']],
  })
  expect((await chat.ask('rename todo.md to notes.txt'))?.preview).toEqual({
    kind: 'none',
    reason: 'notes.txt exists already, so nothing can be moved there.',
  })
})

test('V14 restore_samples lists what it overwrites and what it puts back', async () => {
  await writeFile(file('notes.txt'), '12345')
  await rm(file('todo.md'))
  const chat = await open()
  expect((await chat.ask('Restore the sample files'))?.preview).toEqual({
    kind: 'list',
    total: '2 files: 1 overwritten (5 bytes lost), 1 put back',
    items: ['notes.txt: overwritten, 5 bytes lost', 'todo.md: put back'],
  })
  await chat.answer()
  expect(existsSync(file('todo.md'))).toBe(true)
})

test('send_email shows the mail as it will be read; to the team, ten mails can be approved until tonight', async () => {
  const chat = await open()
  const asked = await chat.ask('mail the team "Back at noon."')
  expect(asked?.preview).toMatchObject({
    kind: 'text',
    text: expect.stringMatching(/^From: .*\nTo: team@example\.org\nSubject: Back at noon\n\nBack at noon\.$/),
  })
  expect(asked?.mandates).toMatchObject([{ id: 'team', uses: 10 }])
  const seconds = asked?.mandates?.[0]?.expiresIn ?? 0
  expect(seconds).toBeGreaterThan(0)
  expect(seconds).toBeLessThanOrEqual(25 * 60 * 60)
  await chat.answer({ mandate: 'team' })
  expect(await chat.ask('mail the team "Here now."')).toBeUndefined()
  expect((await readdir(file('outbox'))).length).toBe(2)
  expect((await chat.ask('mail mara@example.org "Here now."'))?.mandates).toBeUndefined()
  expect(await chat.grants()).toMatchObject([{ usesLeft: 8, terms: { used: 2 } }])
})

test('pay_invoice pays a payee up to 200 EUR without asking, asks beyond, and shows what was paid before', async () => {
  const chat = await open()
  const asked = await chat.ask('pay 120 EUR to Crane Ltd for invoice 7')
  expect(asked?.preview).toEqual({
    kind: 'table',
    total: '120 EUR to Crane Ltd, 0 EUR before',
    columns: ['Day', 'Amount', 'Reference'],
    rows: [['now', '120 EUR', 'invoice 7']],
  })
  await chat.answer({ mandate: 'payee' })
  expect(await chat.ask('pay 79.50 EUR to Crane Ltd')).toBeUndefined()
  expect(chat.said()).toBe('Paid 79.5 EUR to Crane Ltd.')
  const beyond = await chat.ask('pay 1 EUR to Crane Ltd')
  expect(beyond?.preview).toMatchObject({ total: '1 EUR to Crane Ltd, 199.5 EUR before' })
  expect((await chat.ask('pay 0.10 USD to Crane Ltd'))?.id, 'another currency').toBeDefined()
  expect((await chat.ask('pay 0.10 EUR to Acme'))?.id, 'another payee').toBeDefined()
  expect((await read('payments.csv')).split('\n').map((line) => line.split(',').slice(1).join())).toEqual([
    'Crane Ltd,120,EUR,invoice 7',
    'Crane Ltd,79.5,EUR,without a number',
    '',
  ])
  expect(await chat.grants()).toMatchObject([
    { terms: { budget: { total: 200, unit: 'EUR' }, spent: 199.5 } },
  ])
})
