import { exponent } from './measure.mjs'

/** A table with time, cost per delta, exponent and ratio to the immutable floor, for each contender of a timed workload. */
function timedTable({ unit, sizes, points, names }) {
  const largest = sizes.at(-1)
  const columns = [
    '',
    ...sizes.map((size) => `${size.toLocaleString('en')} ${unit}`),
    'us each',
    ...(sizes.length > 1 ? ['exponent'] : []),
    'x floor',
  ]
  const rows = Object.entries(names).map(([id, name]) => {
    const own = points.filter((point) => point.contender === id)
    const at = (size) => own.find((point) => point.size === size)
    const cost = costOf(points, id, largest)
    const growth = exponent(own.filter((point) => !point.skipped))
    return [
      name,
      ...sizes.map((size) => time(at(size))),
      cost === undefined ? '' : number((cost.ms * 1000) / cost.count),
      ...(sizes.length > 1 ? [growth?.toFixed(2) ?? ''] : []),
      cost === undefined ? '' : number(cost.ratio),
    ]
  })
  return { columns, rows }
}

/** What a contender's largest size cost, beside the immutable floor at the same size. */
export function costOf(points, contender, largest = Number.POSITIVE_INFINITY) {
  const own = points
    .filter((point) => point.contender === contender && !point.skipped && point.size <= largest)
    .at(-1)
  const floor = points.find((point) => point.contender === 'immutable' && point.size === own?.size)
  return own && floor && { ...own, ratio: own.ms / floor.ms }
}

function time(point) {
  if (!point) return ''
  if (point.skipped) return 'too slow'
  return `${number(point.ms)} ms${point.runs === 1 ? ' (1 run)' : ''}`
}

/** Three digits. */
export function number(value) {
  if (value === 0) return '0'
  if (!Number.isFinite(value)) return 'none'
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))
  return value.toLocaleString('en', {
    minimumFractionDigits: Math.min(digits, 3),
    maximumFractionDigits: Math.min(digits, 3),
  })
}

/** One table as Markdown, with its notes. */
export function markdown(table) {
  const { columns, rows } = table.points ? timedTable(table) : table
  const line = (cells) => `| ${cells.join(' | ')} |`
  const align = columns.map((_, i) => (i === 0 ? '---' : '---:'))
  const notes = (table.notes ?? []).filter(Boolean).map((note) => `\n${note}\n`)
  return [`### ${table.title}`, '', line(columns), line(align), ...rows.map(line), ...notes, ''].join('\n')
}

/** The same for a terminal: columns under one another. */
export function plain(table) {
  const { columns, rows } = table.points ? timedTable(table) : table
  const widths = columns.map((column, i) =>
    Math.max(column.length, ...rows.map((row) => String(row[i]).length)),
  )
  const line = (cells) =>
    cells
      .map((cell, i) => (i === 0 ? String(cell).padEnd(widths[i]) : String(cell).padStart(widths[i])))
      .join('  ')
  const notes = (table.notes ?? []).filter(Boolean)
  return [
    table.title,
    line(columns),
    line(widths.map((width) => '-'.repeat(width))),
    ...rows.map(line),
    ...notes,
    '',
  ].join('\n')
}
