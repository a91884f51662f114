import { expect, test } from 'vitest'
import { main } from './run.mjs'

test('V20 an approval is signed, verified and claimed with every ledger there is, and its cost printed', async () => {
  const printed: string[] = []
  const { rows } = await main(['--no-build', '--only', 'server-approval'], {
    scale: 'tiny',
    write: (text) => printed.push(text),
  })
  const text = printed.join('\n')
  expect(text).toContain('An approval on the server')
  for (const step of ['signing', 'verifying', 'claiming'])
    for (const ledger of ['memory', 'file']) expect(text).toContain(`${ledger}: ${step}`)
  expect(text).toMatch(/Redis: (?:signing|not measured)/)
  expect(text).toMatch(/PostgreSQL: (?:statements for one approval|not measured)/)
  expect(text).toContain('SQLite: statements for one approval')
  expect(text).toContain('asking: with a preview of 100 KB, more than without')
  expect(rows.filter(({ ok }) => ok !== undefined)).toHaveLength(6)
})
