import { expect, test } from 'vitest'
import { search } from '../../docs/.vitepress/search.mjs'
import { allPages, anchorOf, readPage } from './markdown.js'
import { indexOf, missedTasks, tasks } from './search.mjs'

/** The sections of a guide, as the site indexes them: each heading with those above it, and the text below, without what pictures show. */
function sectionsOf(page: string) {
  const id = `/${page.slice('docs/'.length, -'.md'.length)}`
  const text = readPage(page).replace(/<!--[\s\S]*?-->|<picture>[\s\S]*?<\/picture>/g, '')
  const above: string[] = []
  // a line in a code block that begins with # is none
  const headings = text.replace(/^```[\s\S]*?^```/gm, (code) => code.replace(/^#/gm, ' '))
  return headings.split(/^(?=#{1,6} )/m).flatMap((section) => {
    const [, marks = '', title = ''] = /^(#+) (.*)/.exec(section) ?? []
    if (marks === '') return []
    above.splice(marks.length - 1, Number.POSITIVE_INFINITY, title)
    const anchor = marks.length === 1 ? '' : `#${anchorOf(title)}`
    return [
      { id: id + anchor, title, titles: above.slice(0, -1), text: section.slice(section.indexOf('\n')) },
    ]
  })
}

const guides = () => allPages().filter((page) => page.startsWith('docs/') && page !== 'docs/index.md')

test("a newcomer's words find the right guide among the first three results", () => {
  // API pages are there once the site is built: scripts/check-search.mjs checks these
  const asked = tasks.filter(({ pages }) => pages.some((page) => !page.startsWith('api/')))
  expect(asked.length).toBeGreaterThanOrEqual(20)
  expect(missedTasks(asked, indexOf(guides().flatMap(sectionsOf), search), search)).toEqual([])
})

test('an error code finds its row of Troubleshooting among the first three results', () => {
  const codes = [...readPage('docs/errors.md').matchAll(/^\| `([a-z]+(?:-[a-z]+)+)` \|/gm)].map(
    ([, code = '']) => code,
  )
  expect(codes.length).toBeGreaterThan(50)
  const asked = codes.map((words) => ({ words, pages: ['errors'] }))
  expect(missedTasks(asked, indexOf(guides().flatMap(sectionsOf), search), search)).toEqual([])
})

test('an API page comes after every guide, unless somebody types its name', () => {
  const { boostDocument, tokenize } = search.searchOptions
  const boost = (id: string, term: string) => boostDocument(id, term, { titles: [] })
  const page = '/api/@countersign/react/functions/useChat#function-usechat'
  expect(tokenize('useChat')).toContain('=useChat')
  expect(boost(page, '=usechat')).toBeGreaterThan(boost('/react#quick-start-react', '=usechat'))
  expect(boost(page, 'reload')).toBeLessThan(boost('/performance#performance', 'reload'))
  expect(tokenize('connection')).toEqual(['connection'])
  expect(boost('/api/@countersign/client/interfaces/Connection', 'connection')).toBe(boost(page, 'reload'))
})
