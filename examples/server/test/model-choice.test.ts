import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { readEnvFile } from '../src/environment.js'
import { chooseModel } from '../src/model-choice.js'

const key = 'sk-secret-0123456789'

test('without a key or an address the demo has its embedded planner, and says why', () => {
  expect(chooseModel({})).toEqual({
    choice: { kind: 'planner' },
    because:
      'Model: the embedded planner, because no key and no address of a model is set (.env.example names them).',
  })
  expect(chooseModel({ OPENAI_API_KEY: ' ', ANTHROPIC_API_KEY: '' }).choice.kind).toBe('planner')
})

test.each([
  ['openai', 'OPENAI_API_KEY', 'OPENAI_MODEL', 'gpt-5.4-mini', 'OpenAI'],
  ['anthropic', 'ANTHROPIC_API_KEY', 'ANTHROPIC_MODEL', 'claude-sonnet-5-5', 'Anthropic'],
  ['gemini', 'GEMINI_API_KEY', 'GEMINI_MODEL', 'gemini-flash-latest', 'Google'],
])('a key chooses %s, with a model by default and by name', (kind, variable, modelVariable, model, title) => {
  expect(chooseModel({ [variable]: key })).toEqual({
    choice: { kind, apiKey: key, model },
    because: `Model: ${model} of ${title}, because ${variable} is set.`,
  })
  expect(chooseModel({ [variable]: key, [modelVariable]: 'another' }).choice).toMatchObject({
    model: 'another',
  })
})

test('an address chooses a compatible server, with a key or without', () => {
  const address = { OPENAI_BASE_URL: 'http://localhost:11434/v1' }
  expect(chooseModel(address)).toEqual({
    choice: {
      kind: 'compatible',
      baseURL: 'http://localhost:11434/v1',
      apiKey: undefined,
      model: 'gpt-oss:20b',
    },
    because:
      'Model: gpt-oss:20b of a compatible server at http://localhost:11434, because OPENAI_BASE_URL is set.',
  })
  const withKey = chooseModel({ ...address, OPENAI_API_KEY: key, OPENAI_MODEL: 'qwen3' })
  expect(withKey.choice).toMatchObject({ kind: 'compatible', apiKey: key, model: 'qwen3' })
  expect(withKey.because).toMatch(/because OPENAI_BASE_URL is set\.$/)
  expect(() => chooseModel({ OPENAI_BASE_URL: 'localhost' })).toThrow('must be an http address')
})

test('of several the first in a stated order is taken, which the line says; DEMO_MODEL chooses another', () => {
  const all = { OPENAI_API_KEY: key, ANTHROPIC_API_KEY: key, GEMINI_API_KEY: key }
  const { choice, because } = chooseModel(all)
  expect(choice.kind).toBe('openai')
  expect(because).toBe(
    'Model: gpt-5.4-mini of OpenAI, because OPENAI_API_KEY is set, before ANTHROPIC_API_KEY and GEMINI_API_KEY (DEMO_MODEL chooses another).',
  )
  expect(chooseModel({ ...all, DEMO_MODEL: 'gemini' })).toMatchObject({
    choice: { kind: 'gemini' },
    because: 'Model: gemini-flash-latest of Google, because DEMO_MODEL says so.',
  })
  expect(chooseModel({ ...all, DEMO_MODEL: 'planner' }).choice.kind).toBe('planner')
})

test('a DEMO_MODEL that cannot be had is an error that names the way out', () => {
  expect(() => chooseModel({ DEMO_MODEL: 'gpt' })).toThrow(
    'DEMO_MODEL=gpt is not known. Choose one of: planner, compatible, openai, anthropic, gemini.',
  )
  expect(() => chooseModel({ DEMO_MODEL: 'anthropic', OPENAI_API_KEY: key })).toThrow(
    'DEMO_MODEL=anthropic needs ANTHROPIC_API_KEY, and it is not set.',
  )
})

test('what is said at start holds no key, also where it is part of an address', () => {
  const environments = [
    { OPENAI_API_KEY: key },
    { OPENAI_BASE_URL: `http://user:${key}@localhost:1/v1?key=${key}`, OPENAI_API_KEY: key },
  ]
  for (const environment of environments) expect(chooseModel(environment).because).not.toContain(key)
})

test('.env.example documents every variable that the choice reads, with its default', () => {
  const documented = readFileSync(join(import.meta.dirname, '../../../.env.example'), 'utf8')
  const names = [...documented.matchAll(/^# ([A-Z_]+)=/gm)].map(([, name]) => name)
  expect(new Set(names)).toEqual(
    new Set([
      'OPENAI_BASE_URL',
      'OPENAI_MODEL',
      'OPENAI_API_KEY',
      'ANTHROPIC_API_KEY',
      'ANTHROPIC_MODEL',
      'GEMINI_API_KEY',
      'GEMINI_MODEL',
      'DEMO_MODEL',
      'PORT',
      'DEMO_DIR',
      'DEMO_DELAY',
    ]),
  )
  for (const model of ['gpt-oss:20b', 'gpt-5.4-mini', 'claude-sonnet-5-5', 'gemini-flash-latest'])
    expect(documented).toContain(`_MODEL=${model}\n`)
})

test('.env is read where there is one, and what is set already stays', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-env-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, '.env')
  vi.stubEnv('GEMINI_MODEL', 'set before')
  vi.stubEnv('DEMO_MODEL', undefined)
  onTestFinished(() => void vi.unstubAllEnvs())
  readEnvFile(file)
  expect(process.env.DEMO_MODEL).toBeUndefined()
  await writeFile(file, '# a comment\nDEMO_MODEL=planner\nGEMINI_MODEL=from the file\n')
  readEnvFile(file)
  expect([process.env.DEMO_MODEL, process.env.GEMINI_MODEL]).toEqual(['planner', 'set before'])
})
