import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { approvalView, ChatClient, fetchServerSentEvents } from '@countersign/client'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { blocksOf } from './docs/markdown.js'
import { freePort } from './newcomer/free-port.js'

const root = join(import.meta.dirname, '..')

/** The code blocks that are files; that they compile is tested with those of all pages. */
const blocks = blocksOf('README.md').flatMap(({ file, code }) =>
  file === undefined ? [] : [{ name: file, code }],
)
let folder = ''

beforeAll(() => {
  // Inside the workspace, so that the packages are found as a user's would be.
  mkdirSync(join(root, '.verify'), { recursive: true })
  folder = mkdtempSync(join(root, '.verify', 'readme-'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const { name, code } of blocks) writeFileSync(join(folder, name), code)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the README shows a server, a client and a component', () => {
  expect(blocks.map(({ name }) => name)).toEqual(['server.js', 'chat.tsx', 'client.js'])
})

test('the server and the client of the README run as they are, and delete the draft once the user has approved', async () => {
  const { draft, url } = await startServer()
  expect(existsSync(draft)).toBe(true)
  const client = spawn(process.execPath, ['client.js'], {
    cwd: folder,
    env: { ...process.env, CHAT_URL: url },
  })
  let said = ''
  client.stdout.on('data', (chunk) => {
    said += chunk
  })
  await once(client, 'close')
  expect(said).toBe("delete_file { path: 'draft.txt' }\nThe draft is deleted.\n")
  expect(existsSync(draft)).toBe(false)
})

test('the page of the README says what happened after a denial, an approval, and each further click', async () => {
  const { draft, url } = await startServer()
  const chat = new ChatClient({ connection: fetchServerSentEvents(url) })
  onTestFinished(() => chat.dispose())
  /** One click on "Delete the draft", one on a choice; returns the text of the reply. */
  async function deleteDraft(option: 'once' | 'deny') {
    await chat.sendMessage('Delete the draft, please.')
    const { pendingApprovals } = chat.getSnapshot()
    const choices = pendingApprovals.flatMap((call) => approvalView(call)?.choices ?? [])
    const choice = choices.find((one) => one.option === option)
    if (choice === undefined) throw new Error(`The page offers no ${option}.`)
    await chat.addToolApprovalResponse(choice.response)
    expect(chat.getSnapshot().error).toBeUndefined()
    const { parts } = chat.getSnapshot().messages.at(-1) ?? { parts: [] }
    return parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('')
  }
  expect(await deleteDraft('deny')).toBe('The draft was not deleted.')
  expect(existsSync(draft)).toBe(true)
  expect(await deleteDraft('once')).toBe('The draft is deleted.')
  expect(existsSync(draft)).toBe(false)
  expect(await deleteDraft('once')).toBe('The draft is deleted.')
})

test('the README installs every package that its code imports', () => {
  const { code = '' } = blocksOf('README.md').find(({ language }) => language === 'sh') ?? {}
  const installed = code.trim().split(' ').slice(2)
  const imported = blocks.flatMap((block) => [...block.code.matchAll(/from '((?:@[\w-]+\/)?[\w-]+)/g)])
  expect(imported.length).toBeGreaterThan(5)
  expect(imported.map(([, name]) => name).filter((name) => !installed.includes(name ?? ''))).toEqual([
    'node',
    'node',
  ])
})

/** The server of the README, until the test is over. */
async function startServer(): Promise<{ readonly draft: string; readonly url: string }> {
  const port = await freePort()
  const env = { ...process.env, PORT: String(port) }
  const server = spawn(process.execPath, ['server.js'], { cwd: folder, env, stdio: 'inherit' })
  onTestFinished(() => void server.kill())
  await listening(port)
  return { draft: join(folder, 'draft.txt'), url: `http://127.0.0.1:${port}/` }
}

async function listening(port: number): Promise<void> {
  for (;;) {
    const answered = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
    if (answered) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
