// The interop matrix as a table, out of the names of its tests.

/** The columns, rows and cells of a JSON report of vitest, the tests that failed, and the cells that no test tried. */
export function readMatrix(report) {
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults)
  const cells = tests.filter(({ title }) => title.startsWith('matrix | ')).map(readCell)
  const columns = [...new Set(cells.map(({ column }) => column))].sort()
  const longest = columns.map((column) => cells.filter((cell) => cell.column === column))
  const rows = [
    ...new Set(
      longest
        .sort((a, b) => b.length - a.length)
        .flat()
        .map(({ row }) => row),
    ),
  ]
  const found = new Map(cells.map((cell) => [`${cell.column} | ${cell.row}`, cell]))
  const all = columns.flatMap((column) => rows.map((row) => `${column} | ${row}`))
  return {
    columns,
    rows,
    cell: (column, row) => found.get(`${column} | ${row}`),
    missing: all.filter((name) => !found.has(name)),
    failed: tests.filter(({ status }) => status === 'failed').map(({ title }) => title),
  }
}

function readCell({ title, status }) {
  const [, column, row, cannot] = title.split(' | ')
  const passed = status === 'passed'
  return { column, row, passed, reason: cannot?.replace(/^cannot: /, '') }
}

/** Columns by which side of them is ours. */
function groupsOf({ columns }) {
  const theirs = columns.filter((column) => column.endsWith(' on our server'))
  const ours = columns.filter((column) => column.startsWith('our client on '))
  const others = columns.filter((column) => !theirs.includes(column) && !ours.includes(column))
  return [
    { title: 'Their clients on our server', columns: theirs },
    { title: 'Our client on their servers', columns: ours },
    { title: 'Others', columns: others },
  ].filter(({ columns }) => columns.length > 0)
}

/** What a cell says. Reasons are numbered in the order in which they come up. */
function sayCells(matrix) {
  const reasons = []
  const say = (column, row) => {
    const cell = matrix.cell(column, row)
    if (cell === undefined) return 'MISSING'
    if (!cell.passed) return 'FAIL'
    if (cell.reason === undefined) return 'pass'
    const at = reasons.indexOf(cell.reason)
    return `cannot [${at < 0 ? reasons.push(cell.reason) : at + 1}]`
  }
  const groups = groupsOf(matrix).map(({ title, columns }) => ({
    title,
    columns: columns.map((column) => column.replace(/^our client on (an? )?| on our server$/g, '')),
    rows: matrix.rows.map((row) => [row, ...columns.map((column) => say(column, row))]),
  }))
  return { groups, reasons }
}

/** The matrix for a terminal: columns by letters, explained below. */
export function printMatrix(matrix) {
  const { groups, reasons } = sayCells(matrix)
  const lines = groups.flatMap(({ title, columns, rows }) => {
    const letters = columns.map((_, at) => String.fromCharCode(65 + at))
    const table = [['', ...letters], ...rows]
    const widths = table[0].map((_, at) => Math.max(...table.map((line) => line[at].length)))
    return [
      title,
      ...table.map((line) => `  ${line.map((text, at) => text.padEnd(widths[at])).join('  ')}`.trimEnd()),
      ...columns.map((column, at) => `  ${letters[at]}: ${column}`),
      '',
    ]
  })
  const { columns, rows, failed, missing } = matrix
  const passed = columns.length * rows.length - missing.length - failed.filter(isCell).length
  return [
    ...lines,
    ...reasons.map((reason, at) => `[${at + 1}] ${reason}`),
    ...failed.map((name) => `FAIL     ${name}`),
    ...missing.map((name) => `MISSING  ${name}`),
    `${passed} of ${columns.length * rows.length} cells are as they should be; ${reasons.length} things a peer cannot do.`,
  ].join('\n')
}

function isCell(name) {
  return name.startsWith('matrix | ')
}

/** The matrix as a page of the documentation. */
export function writeMatrix(matrix) {
  const { groups, reasons } = sayCells(matrix)
  const tables = groups.flatMap(({ title, columns, rows }) => [
    `## ${title}`,
    '',
    line(['', ...columns]),
    line(['---', ...columns.map(() => '---')]),
    ...rows.map(line),
    '',
  ])
  const notes = reasons.map((reason, at) => `${at + 1}. ${reason}`)
  const cannot = notes.length > 0 ? ['## What a peer cannot do', '', ...notes, ''] : []
  return [...preface, ...tables, ...cannot].join('\n')
}

const preface = [
  '# Interop matrix',
  '',
  'Each cell is an HTTP test (`test/interop`) with the published package of that project. `npm run interop` runs the tests and writes this page.',
  '',
]

function line(cells) {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
