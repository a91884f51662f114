import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

// the search engine of the site, as the package that makes the site has it
const fromSite = createRequire(createRequire(import.meta.url).resolve('vitepress'))
const MiniSearch = fromSite('minisearch')

const file = new URL('search-tasks.json', import.meta.url)

/** What a newcomer types, and the pages of which one has to be among the first three results; `page#section` is only that section. */
export const tasks = JSON.parse(readFileSync(file, 'utf8'))

/** What the site indexes and stores of each section of a page. */
const fields = { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] }

/** The index of sections, each with its `id`, `title`, `titles` above it and `text`. */
export function indexOf(sections, { options }) {
  const index = new MiniSearch({ ...fields, ...options })
  index.addAll(sections)
  return index
}

/** The index that a site was built with. */
export function loadIndex(json, { options }) {
  return MiniSearch.loadJSON(json, { ...fields, ...options })
}

/** The sections of the first three results, as they are listed. */
export function firstThree(index, words, { searchOptions }) {
  const results = index.search(words, searchOptions).slice(0, 3)
  return results.map(({ id }) => id.slice(1))
}

/** A line for each of these tasks whose page is not among the first three results. */
export function missedTasks(of, index, search) {
  return of.flatMap(({ words, pages }) => {
    const found = firstThree(index, words, search)
    const fits = (one) => pages.includes(one) || pages.includes(one.replace(/#.*/, ''))
    return found.some(fits) ? [] : [`"${words}" finds ${found.join(', ')}`]
  })
}
