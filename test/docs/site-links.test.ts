import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { deadLinks } from '../../scripts/site-links.mjs'

test('the build of the site finds links to pages that are not there, and links to a repository that go up', () => {
  const site = mkdtempSync(join(tmpdir(), 'countersign-site-'))
  onTestFinished(() => rmSync(site, { recursive: true, force: true }))
  mkdirSync(join(site, 'api/functions'), { recursive: true })
  const save = (file: string, ...links: string[]) =>
    writeFileSync(join(site, file), links.map((link) => `<a class="link" href="${link}">a</a>`).join(''))
  save('start.html', '/', '/api/', '/gone', '/start#there', '#here', 'https://example.com/blob/../x.md')
  save('index.html', '/start', './start', '/picture.webp')
  save('picture.webp')
  save('api/index.html', './functions/one', 'https://example.com/')
  save('api/functions/one.html', '../', '../functions/two')
  expect(deadLinks(site).toSorted()).toEqual([
    'api/functions/one.html: ../functions/two',
    'start.html: /gone',
    'start.html: https://example.com/blob/../x.md',
  ])
})
