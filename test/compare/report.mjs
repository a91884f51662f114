// From counts to the words of a cell, and the tables of docs/compare.md. Nothing else writes a word into a cell.
import { columns } from './columns.mjs'
import { scenarios } from './scenarios.mjs'

/**
 * `approved`, `denied`, `edited`: calls as the user approved, denied or (where the server offered it) edited them. `ran`: calls as the tool
 * wrote them down. `owed`: an approved call has to run. `told`: the page was told that something went wrong.
 */
export function verdictOf({ cannot, stream, flood, ...found }) {
  if (cannot !== undefined) return 'does not apply'
  if (stream !== undefined) return stream === 'whole' ? 'whole answer' : 'rest is lost'
  if (flood !== undefined)
    return flood.said < 32 ? 'model waits' : flood.grown > 32 ? 'buffers all' : 'bounded'
  return verdictOfRuns(found)
}

function verdictOfRuns({ approved, denied = [], edited = [], ran, ...found }) {
  const same = (one, other) => one.to === other.to && one.amount === other.amount
  const has = (calls, call) => calls.some((one) => same(one, call))
  if (ran.some((call) => has(denied, call))) return 'ran after a denial'
  if (ran.some((call) => !has(approved, call) && !has(edited, call))) return 'ran unapproved'
  if (ran.some((call) => ran.filter((one) => same(one, call)).length > 1)) return 'ran twice'
  if (found.disagree)
    return found.toldNotSent && ran.length > 0 ? 'ran, but says it did not' : 'one answer counts'
  if (ran.length === 0 && found.owed) return found.told ? 'not run, and says so' : 'lost'
  if (ran.length === 0) return 'refused'
  if (has(edited, ran[0])) return 'ran as edited'
  return found.late ? 'ran late' : 'ran once'
}

const begin = '<!-- compare: begin -->'
const end = '<!-- compare: end -->'
const line = (cells) => `| ${cells.join(' | ')} |`

/** The tables. `words`: by `column/row`. */
function printTables(words) {
  const table = (heading, wanted) => {
    const shown = columns.filter(({ option }) => option === wanted)
    const rows = scenarios.map(({ key, row }) =>
      line([`\`${key}\`: ${row}`, ...shown.map((column) => words.get(`${column.key}/${key}`))]),
    )
    return [
      heading,
      '',
      line(['', ...shown.map(({ title }) => title)]),
      line(['---', ...shown.map(() => '---')]),
      ...rows,
    ]
  }
  return [
    ...table('### As the documentation sets it up', false),
    '',
    ...table('### With the options below', true),
  ].join('\n')
}

/** The page with these words in its tables. */
export function replaceTables(page, words) {
  const [before, rest] = page.split(begin)
  const after = rest?.split(end)[1]
  if (after === undefined) throw new Error('docs/compare.md has no place for the tables.')
  return `${before}${begin}\n\n${printTables(words)}\n\n${end}${after}`
}

/** The words of the tables on a page, by `column/row`. */
export function readTables(page) {
  const tables = page.split(begin)[1].split(end)[0].split('\n### ').slice(1)
  return new Map(
    tables.flatMap((table, at) => {
      const shown = columns.filter(({ option }) => option === (at === 1))
      return table.split('\n').flatMap((text) => {
        const [, key, cells] = /^\| `([\w-]+)`: [^|]*\| (.*) \|$/.exec(text) ?? []
        return key === undefined
          ? []
          : cells.split(' | ').map((word, of) => [`${shown[of].key}/${key}`, word])
      })
    }),
  )
}

/** Every byte that was sent, what the server wrote before it had answered, and what that amounts to. */
export function printCell({ column, scenario, verdict, found: { sent, lines, ...counts } }) {
  const wrote = lines.map(({ at, ...line }) => ({
    line: `  tool: ${JSON.stringify(line)}`,
    after: sent.findLastIndex(({ wroteBefore }) => wroteBefore <= at),
  }))
  return [
    `${column.title}${column.option ? ' with its options' : ''}: ${scenario.row}`,
    ...sent.flatMap(({ method, path, headers, body, status }, at) => [
      '',
      `> ${method} ${path}  x-user: ${headers['x-user']}  ${Buffer.byteLength(body ?? '')} bytes`,
      ...(body === undefined ? [] : [`  ${body}`]),
      `< ${status === 0 ? 'the connection broke' : status}`,
      ...wrote.filter(({ after }) => after === at).map(({ line }) => line),
    ]),
    '',
    JSON.stringify(counts),
    `${column.key}/${scenario.key}: ${verdict}`,
  ].join('\n')
}
