import { setImmediate } from 'node:timers/promises'
import { type Preview, REDACTED, sanitizeArgs } from '@countersign/core'
import { expect, test } from 'vitest'
import { randomFrom } from '../../../../test/random.js'
import { ask, call, collect, input, requests, testAgent, user } from '../support.js'
import { fileTool, writer, yes } from './world.js'

const secret = 'hunter2 "quoted"\nline two of it'

/** What is shown, and what `execute` gets, of a preview of these arguments. */
async function masked(
  args: Record<string, unknown>,
  preview: Preview,
  redact: (input: Record<string, unknown>) => unknown = sanitizeArgs,
) {
  const made = fileTool({ preview: () => preview, redact })
  const { agent } = testAgent([call(['call_1', 'write', args]), [], []], { tools: [made.tool] })
  const { history, first } = await ask(agent)
  await collect(agent, input(history, { resume: [yes(first)] }))
  expect(made.approved).toEqual([preview])
  return first.approval.preview
}

test('V9 values that redact masks are masked in every kind of preview, and execute gets the real ones', async () => {
  const args = { user: 'ann', password: secret, apiKey: 48151 }
  const kinds: readonly [Preview, Preview][] = [
    [
      { kind: 'text', text: `signs in with ${secret}, key 48151` },
      { kind: 'text', text: `signs in with ${REDACTED}, key ${REDACTED}` },
    ],
    [
      { kind: 'diff', name: secret, before: 'ann', after: `ann:${secret}` },
      { kind: 'diff', name: REDACTED, before: 'ann', after: `ann:${REDACTED}` },
    ],
    [
      {
        kind: 'diff',
        hunks: [{ before: 48151, after: 1, lines: ['-ann', '+hunter2 "quoted"', '+line two of it'] }],
      },
      { kind: 'diff', hunks: [{ before: 48151, after: 1, lines: ['-ann', `+${REDACTED}`, `+${REDACTED}`] }] },
    ],
    [
      { kind: 'list', items: [secret, 'ann'], total: `1 of ${secret}` },
      { kind: 'list', items: [REDACTED, 'ann'], total: `1 of ${REDACTED}` },
    ],
    [
      { kind: 'table', columns: ['key', 'n'], rows: [['ann', 48151]] },
      { kind: 'table', columns: ['key', 'n'], rows: [['ann', REDACTED]] },
    ],
    [
      { kind: 'json', value: { [secret]: [48151, 'ann', `a ${JSON.stringify({ secret })}`] } },
      { kind: 'json', value: { [REDACTED]: [REDACTED, 'ann', `a {"secret":"${REDACTED}"}`] } },
    ],
    [
      { kind: 'none', reason: `${encodeURIComponent(secret)} is not found` },
      { kind: 'none', reason: `${REDACTED} is not found` },
    ],
  ]
  for (const [preview, shown] of kinds) expect(await masked(args, preview)).toEqual(shown)
})

test('V9 masked parts of nested arguments, and arguments that are hidden as a whole, are masked', async () => {
  const args = { auth: { user: 'bob77', pins: ['9081'] } }
  const preview: Preview = { kind: 'text', text: 'bob77 9081 ann' }
  expect(await masked(args, preview)).toEqual({ kind: 'text', text: `${REDACTED} ${REDACTED} ann` })
  expect(await masked(args, preview, () => undefined)).toEqual({
    kind: 'text',
    text: `${REDACTED} ${REDACTED} ann`,
  })
})

test('V9 a text that is only cut for display is not masked', async () => {
  const text = 'x'.repeat(20_000)
  const preview: Preview = { kind: 'diff', before: '', after: text }
  expect(await masked({ text }, preview)).toEqual(preview)
})

test('V9 with too many masked values there is no preview', async () => {
  const password = Array.from({ length: 300 }, (_, index) => `secret ${index}`)
  expect(await masked({ password }, { kind: 'text', text: 'secret 299' })).toMatchObject({ kind: 'none' })
})

test('V9 a mask that fails leaves the call without an approval request', async () => {
  const redact = () => {
    throw new Error('broken')
  }
  await expect(masked({}, { kind: 'text', text: '' }, redact)).rejects.toThrow(/nothing was asked/)
})

test('V9 values of fewer than four characters are not masked: the model could blank what the user has to see', async () => {
  const args = { password: '0', token: 1, secret: '939', auth: ['del', 'fil'] }
  const preview: Preview = { kind: 'table', columns: ['deletes'], rows: [['939 files'], [939]] }
  expect(await masked(args, preview)).toEqual(preview)
})

test('V9 values of fewer than eight characters are masked as whole words only, longer ones anywhere', async () => {
  const args = { password: 'file', token: 'x-12', secret: 'notes-of-ann' }
  const text = 'file, files, profile, "file", x-123, x-12 and /home/notes-of-anna'
  expect(await masked(args, { kind: 'text', text })).toEqual({
    kind: 'text',
    text: `${REDACTED}, files, profile, "${REDACTED}", x-123, ${REDACTED} and /home/${REDACTED}a`,
  })
})

test('V9 at each place the longest value is masked, whatever the values have in common', async () => {
  const random = randomFrom(20261126)
  const word = (most: number) =>
    Array.from({ length: 4 + Math.floor(random() * most) }, () => 'ab-'[Math.floor(random() * 3)]).join('')
  const isLetter = (char = '') => /[ab]/.test(char)
  for (let game = 0; game < 100; game++) {
    const tokens = Array.from({ length: 5 }, () => word(8))
    const text = `${word(200)}${tokens[0]}`
    const fits = (one: string, at: number) =>
      text.startsWith(one, at) &&
      (one.length >= 8 ||
        !(
          (isLetter(text[at - 1]) && isLetter(one[0])) ||
          (isLetter(one.at(-1)) && isLetter(text[at + one.length]))
        ))
    let shown = ''
    for (let at = 0; at < text.length; ) {
      const found = tokens.filter((one) => fits(one, at)).sort((one, other) => other.length - one.length)[0]
      shown += found === undefined ? text[at] : REDACTED
      at += found?.length ?? 1
    }
    expect(await masked({ tokens }, { kind: 'text', text })).toEqual({ kind: 'text', text: shown })
  }
})

test('V9 values that begin like each part of a long preview do not stop the process, and with too many of them there is none', async () => {
  const tokens = Array.from({ length: 200 }, (_, at) => `${'a'.repeat(1200)}${at}`)
  const long: Preview = { kind: 'text', text: 'a'.repeat(250_000) }
  const short: Preview = { kind: 'text', text: 'a'.repeat(60_000) }
  expect(await masked({ tokens: tokens.slice(0, 60) }, long)).toEqual(long)
  expect(await masked({ tokens }, short)).toEqual(short)
  const reason = 'The arguments have too many masked values.'
  expect(await masked({ tokens }, long)).toEqual({ kind: 'none', reason })
})

test('V9 values are masked as any part of a URL and any form has them', async () => {
  const password = `p@ss w\u00f6rd! 'it' [1] {a}^|"/?#$&,+;:=~*()`
  const url = new URL('https://example.org')
  url.username = password
  url.pathname = `/${password}`
  url.hash = password
  const strict = encodeURIComponent(password).replace(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16)}`,
  )
  const parts = [
    url.username,
    url.pathname.slice(1),
    url.hash.slice(1),
    new URL(`https://example.org/?${password.replace('#', '')}`).search.slice(1),
    new URLSearchParams({ password }).toString().slice('password='.length),
    encodeURIComponent(password),
    strict.replace(/%../g, (hex) => hex.toUpperCase()),
  ]
  for (const [at, part] of parts.entries()) {
    const args = { password: at === 3 ? password.replace('#', '') : password }
    expect(await masked(args, { kind: 'text', text: `GET ${part} now` })).toEqual({
      kind: 'text',
      text: `GET ${REDACTED} now`,
    })
  }
})

test('V9 a masked part of the effect that changes is a change: nothing runs, and the user is asked again', async () => {
  let count = 'one hundred'
  const redact = sanitizeArgs
  const made = fileTool({ redact, preview: () => ({ kind: 'text', text: `deletes ${count} files` }) })
  const args = { password: 'one hundred', token: 'nine hundred' }
  const { agent } = testAgent([call(['call_1', 'write', args]), [], []], { tools: [made.tool] })
  const { history, first } = await ask(agent)
  count = 'nine hundred'
  const events = await collect(agent, input(history, { resume: [yes(first)] }))
  expect(made.runs).toEqual([])
  const [again] = requests(events)
  expect(again?.approval.preview).toEqual(first.approval.preview)
  if (again === undefined) return expect.unreachable()
  await collect(agent, input(history, { resume: [yes(again)] }))
  expect(made.approved).toEqual([{ kind: 'text', text: 'deletes nine hundred files' }])
})

test('V9 a redact that answers with a promise masks nothing, asks nothing, and does not end the process', async () => {
  const unhandled: unknown[] = []
  const take = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', take)
  const redact = (() => Promise.reject(new Error('lost'))) as never
  const { agent } = writer(fileTool({ redact }))
  const events = await collect(agent, input([user('go')]))
  await setImmediate()
  process.off('unhandledRejection', take)
  expect(requests(events)).toEqual([])
  expect(unhandled).toEqual([])
})
