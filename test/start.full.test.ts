import { execFile, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
let clone = ''

beforeAll(async () => {
  clone = await mkdtemp(join(tmpdir(), 'countersign-start-'))
  await promisify(execFile)('git', ['clone', '--quiet', root, clone])
})
afterAll(() => rm(clone, { recursive: true, force: true }))

/** Types `npm start` in a fresh clone; ends the demo once its address is there. Resolves with the lines that were printed. */
async function start(...words: string[]): Promise<readonly string[]> {
  const child = spawn('npm', ['start', '--', ...words], {
    cwd: clone,
    shell: process.platform === 'win32',
    env: { ...process.env, DEMO_MODEL: 'planner' },
  })
  let printed = ''
  const read = (chunk: unknown) => {
    printed += chunk
    if (/Open http.*\n/.test(printed)) child.kill('SIGTERM')
  }
  child.stdout.on('data', read)
  // what npm warns of belongs to the machine and not to the project
  child.stderr.on('data', (chunk) => {
    if (!String(chunk).startsWith('npm warn')) read(chunk)
  })
  await new Promise<void>((resolve) => child.once('close', () => resolve()))
  return printed.trimEnd().split('\n')
}

test('F46 the first start prints at most 15 lines, the address last, and installs at most 300 packages', async () => {
  const lines = await start()
  expect(lines.length).toBeLessThanOrEqual(15)
  expect(lines.at(-1)).toMatch(/^Open http:\/\/localhost:\d+ \(Ctrl\+C stops it\)$/)
  const installed = Number(/Installed what the demo needs \((\d+) packages\)/.exec(lines.join('\n'))?.[1])
  expect(installed).toBeGreaterThan(50)
  expect(installed).toBeLessThanOrEqual(300)
})

test('F46 a start with nothing changed prints at most 8 lines, and neither installs nor builds', async () => {
  const lines = await start()
  expect(lines.length).toBeLessThanOrEqual(8)
  expect(lines.join('\n')).not.toMatch(/Installed|Built/)
})

test('F46 a port that is in use is said, and the next free one is taken', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const address = other.address()
  const port = typeof address === 'object' && address ? address.port : 0
  process.env.PORT = String(port)
  try {
    const lines = await start()
    expect(lines).toContain(`Port ${port} is in use.`)
    expect(lines.at(-1)).not.toContain(`:${port} `)
  } finally {
    delete process.env.PORT
    other.close()
  }
})

test('F46 a page that there is not is named, with those there are', async () => {
  expect((await start('angular')).join('\n')).toContain(
    'There is no "angular". Usage: npm run start -- [react|solid|vue|svelte]',
  )
})
