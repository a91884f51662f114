// The table of docs/compare.md, and what one cell prints.
import { columns } from './columns.mjs'
import { scenarios } from './scenarios.mjs'

const begin = '<!-- compare: begin -->'
const end = '<!-- compare: end -->'

const line = (cells) => `| ${cells.join(' | ')} |`

/** The table. `words`: by `column/row`. */
export function printTable(words) {
  return [
    line(['', ...columns.map(({ title }) => title)]),
    line(['---', ...columns.map(() => '---')]),
    ...scenarios.map(({ key, row }) =>
      line([`${row} (\`${key}\`)`, ...columns.map((column) => words.get(`${column.key}/${key}`) ?? '')]),
    ),
  ].join('\n')
}

/** The page with this table between its markers. */
export function replaceTable(page, words) {
  const [before, rest] = page.split(begin)
  const after = rest?.split(end)[1]
  if (after === undefined) throw new Error('The page has no place for the table.')
  return `${before}${begin}\n\n${printTable(words)}\n\n${end}${after}`
}

/** The words of the table on the page, by `column/row`. */
export function readTable(page) {
  const [, table = ''] = page.split(begin)
  const [, ...lines] = table.split(end)[0].trim().split('\n')
  return new Map(
    lines.slice(1).flatMap((text) => {
      const [first, ...cells] = text.split('|').slice(1, -1)
      const [, key] = /\(`([\w-]+)`\)/.exec(first) ?? []
      return cells.map((cell, at) => [`${columns[at].key}/${key}`, cell.trim()])
    }),
  )
}

/** Every byte that was sent, and every call that ran. */
export function printCell(column, scenario, { sent, lines, ran, approved = [], cannot }, verdict) {
  return [
    `${column.title}: ${scenario.row}`,
    '',
    ...sent.flatMap(({ method, path, headers, body, bytes, status }) => [
      `> ${method} ${path}  x-user: ${headers['x-user']}  ${bytes} bytes`,
      ...(body === undefined ? [] : [`  ${body}`]),
      `< ${status === 0 ? 'the connection broke' : status}`,
    ]),
    '',
    'The tool and the model wrote:',
    ...lines.map((one) => `  ${JSON.stringify(one)}`),
    '',
    `approved: ${JSON.stringify(approved)}  ran: ${JSON.stringify(ran)}`,
    `${column.key}/${scenario.key}: ${verdict}${cannot ? ` (${cannot})` : ''}`,
  ].join('\n')
}
