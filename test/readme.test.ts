import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

/** The code blocks that name a file. */
const blocks = [...readme.matchAll(/^```tsx? (\S+)\n([\s\S]*?)^```/gm)].map(([, name = '', code = '']) => ({
  name,
  code,
}))
let folder = ''

beforeAll(() => {
  // Inside the workspace, so that the packages are found as a user's would be.
  mkdirSync(join(root, '.verify'), { recursive: true })
  folder = mkdtempSync(join(root, '.verify', 'readme-'))
  for (const { name, code } of blocks) writeFileSync(join(folder, name), code)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the README shows a server, a client and a component', () => {
  expect(blocks.map(({ name }) => name)).toEqual(['server.ts', 'client.ts', 'chat.tsx'])
})

test('every code block of the README compiles under strict settings', () => {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.base.json'), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root)
  const program = ts.createProgram(
    blocks.map(({ name }) => join(folder, name)),
    { ...options, jsx: ts.JsxEmit.ReactJSX, types: ['node'], noEmit: true },
  )
  const problems = ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    return `${file?.fileName.split('/').at(-1)}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
  })
  expect(problems).toEqual([])
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

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  return typeof address === 'object' && address ? address.port : 0
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
