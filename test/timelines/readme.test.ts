import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

test('the chained approval in the README of the testing package is a test that runs', () => {
  const readme = readFileSync(join(root, 'packages/testing/README.md'), 'utf8')
  const source = readFileSync(join(import.meta.dirname, 'chained-in-fifteen-lines.test.ts'), 'utf8')
  expect(readme).toContain(`\`\`\`ts\n${source}\`\`\``)
  const [, body = ''] = /async \(\) => \{\n([\s\S]*)\n\}\)\n$/.exec(source) ?? []
  expect(body.split('\n').length).toBeLessThanOrEqual(15)
})
