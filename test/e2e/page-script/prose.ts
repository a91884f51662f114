import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Bench } from './bench.js'
import { looks, sideways } from './looks.js'

const code = 'const a = "<b>"\nrun(a)'
const text = `# The files

Two of **three** are old, see [the list](https://example.org/list?a=1&b=2) and \`todo.md\`:

| File | Size | What it is |
| --- | ---: | --- |
| notes.txt | 1,204 | what was said on Monday, and a long word: ${'harbour'.repeat(9)} |
| todo.md | 88 | <img src=x onerror=alert(1)> |

1. First
   - inner
2. Second

\`\`\`js
${code}
\`\`\`

> Kept as it was.

---

[bad](javascript:alert(1)) ![pixel](https://example.org/p.png)`

/** A server that says one thing. */
async function says(page: Page, delta: string): Promise<void> {
  await page.route('**/api/chat', async (route) => {
    const { threadId, runId } = route.request().postDataJSON()
    const events = [
      { type: 'RUN_STARTED', threadId, runId },
      { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta },
      { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
      { type: 'RUN_FINISHED', threadId, runId },
    ]
    const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    await route.fulfill({ contentType: 'text/event-stream', body })
  })
}

/** How the assistant's text looks, and how it is copied. */
export function readingProse({ spec, open }: Bench): void {
  spec(
    'markdown: tables, links, lists and code; markup stays text, and code and messages are copied',
    async () => {
      const { page, send, settled, ...demo } = await open({
        permissions: ['clipboard-read', 'clipboard-write'],
      })
      await says(page, text)
      await send('Which files?')
      const prose = page.locator('.prose')
      await prose.getByRole('table').waitFor()
      await settled()
      expect(await prose.getByRole('columnheader').allTextContents()).toEqual(['File', 'Size', 'What it is'])
      expect(await prose.getByRole('row').last().textContent()).toContain('<img src=x onerror=alert(1)>')
      const link = prose.getByRole('link', { name: 'the list' })
      expect(await link.getAttribute('href')).toBe('https://example.org/list?a=1&b=2')
      expect(await link.getAttribute('rel')).toBe('noopener noreferrer')
      expect(await prose.getByRole('link').count(), 'no link with a script').toBe(2)
      expect(await prose.locator('ol > li > ul > li').textContent()).toBe('inner')
      expect(await prose.locator('img, script').count()).toBe(0)
      const copied = () => page.evaluate(() => navigator.clipboard.readText())
      await prose.getByRole('button', { name: 'Copy code' }).click()
      await prose.getByRole('button', { name: 'Copied' }).waitFor()
      expect(await copied()).toBe(code)
      const [own, reply] = [page.getByRole('article').first(), page.getByRole('article').last()]
      await reply.getByRole('button', { name: 'Copy message' }).click()
      await reply.locator('.turn-actions').getByText('Copied').waitFor()
      expect(await copied()).toBe(text)
      await own.getByRole('button', { name: 'Copy message' }).click()
      await own.getByText('Copied').waitFor()
      expect(await copied()).toBe('Which files?')
      await prose.getByRole('button', { name: 'Copy code' }).waitFor()
      expect(demo.complaints).toEqual([])
    },
  )

  for (const [name, options] of looks)
    spec(`looks: markdown, ${name}`, async () => {
      const demo = await open(options)
      await says(demo.page, text)
      await demo.send('Which files?')
      await demo.page.getByRole('table').waitFor()
      await demo.settled()
      await demo.page.locator('.chat-scroll').evaluate((element) => element.scrollTo(0, 0))
      await demo.screenshot(`${name}-markdown`)
      expect(await sideways(demo)).toBe(0)
    })
}
