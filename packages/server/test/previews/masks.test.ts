import { type Preview, REDACTED, sanitizeArgs } from '@countersign/core'
import { expect, test } from 'vitest'
import { ask, call, collect, input, testAgent } from '../support.js'
import { fileTool, yes } from './world.js'

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
