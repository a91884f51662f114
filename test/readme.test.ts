import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
  for (const { name, code } of blocks) writeFileSync(join(folder, name), code)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the README shows a server, a client and a component', () => {
  expect(blocks.map(({ name }) => name)).toEqual(['server.ts', 'chat.tsx', 'client.ts'])
})

test('the server and the client of the README delete the draft once the person said yes', async () => {
  for (const name of ['server', 'client']) {
    const { outputText } = ts.transpileModule(readFileSync(join(folder, `${name}.ts`), 'utf8'), {
      compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
    })
    writeFileSync(join(folder, `${name}.mjs`), outputText)
  }
  const draft = join(folder, 'draft.txt')
  writeFileSync(draft, 'draft')
  const port = await freePort()
  const env = { ...process.env, PORT: String(port), CHAT_URL: `http://127.0.0.1:${port}/` }
  const server = spawn(process.execPath, ['server.mjs'], { cwd: folder, env, stdio: 'inherit' })
  try {
    await listening(port)
    const client = spawn(process.execPath, ['client.mjs'], { cwd: folder, env })
    let said = ''
    client.stdout.on('data', (chunk) => {
      said += chunk
    })
    await once(client, 'close')
    expect(said).toBe("delete_file { path: 'draft.txt' }\nThe draft is deleted.\n")
    expect(existsSync(draft)).toBe(false)
  } finally {
    server.kill()
  }
})

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
