// Checks the search of the built site (`npm run docs`) with its own index and options: what a newcomer types has to find the right page
// among the first three results. With arguments, prints what those words find: `node scripts/check-search.mjs approve a tool`.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { firstThree, loadIndex, missedTasks, tasks } from '../test/docs/search.mjs'

const chunks = join(import.meta.dirname, '../docs/.vitepress/dist/assets/chunks')

/** The options as the site has them, beside the list of its pages: functions are text there. */
function readOptions() {
  const file = readdirSync(chunks).find((name) => name.startsWith('metadata.'))
  const source = readFileSync(join(chunks, file), 'utf8')
  const [, data] =
    /__VP_SITE_DATA__=deserializeFunctions\(JSON\.parse\(("(?:[^"\\]|\\.)*")\)\)/.exec(source) ?? []
  if (data === undefined) throw new Error('The site has no data. Build it with `npm run docs`.')
  return revived(JSON.parse(JSON.parse(data)).themeConfig.search.options.miniSearch)
}

function revived(value) {
  if (typeof value === 'string' && value.startsWith('_vp-fn_'))
    return new Function(`return ${value.slice(7)}`)()
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, revived(one)]))
}

async function readIndex(options) {
  const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndexroot'))
  const source = readFileSync(join(chunks, file), 'utf8')
  const { default: json } = await import(`data:text/javascript,${encodeURIComponent(source)}`)
  return loadIndex(json, options)
}

const options = readOptions()
const index = await readIndex(options)
const words = process.argv.slice(2).join(' ')
if (words !== '') console.log(firstThree(index, words, options).join('\n'))
else {
  const missed = missedTasks(tasks, index, options)
  const fromApi = tasks.filter(({ words, pages }) => {
    const found = firstThree(index, words, options)
    return !pages.some((page) => page.startsWith('api/')) && found[0]?.startsWith('api/')
  })
  for (const line of missed) console.log(line)
  for (const { words } of fromApi) console.log(`"${words}" finds an API page first`)
  console.log(
    `${tasks.length - missed.length} of ${tasks.length} searches find their page among the first three results`,
  )
  process.exitCode = missed.length + fromApi.length > 0 ? 1 : 0
}
