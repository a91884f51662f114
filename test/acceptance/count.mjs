// Which numbered lines of the acceptance checklist are proved: pure functions over the results of a test run, of its coverage and of the
// benchmark.

/** The numbers that a name states, as `S4.14`, or `T14` for `T.14`, likewise with `H`, `V` and `W`; a range as `S4.82-S4.90` or `S4.82-90` states all of its numbers. */
export function numbersIn(name) {
  const found = []
  for (const match of name.matchAll(/\b(U|E|S[0-4])\.(\d+)(?:\s?[-–]\s?(?:\1\.)?(\d+))?/g)) {
    const [, section, first, last = first] = match
    for (let at = Number(first); at <= Number(last); at += 1) found.push(`${section}.${at}`)
  }
  for (const [, section, number] of name.matchAll(/\b([THVW])(\d+)\b/g))
    found.push(`${section}.${Number(number)}`)
  return found
}

/**
 * For each number the names of the tests that state it, as `{ passed: string[], failed: string[] }`. `results` is the JSON report of
 * the test runner; a test that was skipped states nothing.
 */
export function statedBy(results) {
  const stated = new Map()
  for (const { assertionResults } of results.testResults) {
    for (const { fullName, status } of assertionResults) {
      if (status !== 'passed' && status !== 'failed') continue
      for (const number of numbersIn(fullName)) {
        const entry = stated.get(number) ?? { passed: [], failed: [] }
        entry[status].push(fullName)
        stated.set(number, entry)
      }
    }
  }
  return stated
}

/**
 * The lines of one section that are proved and those that are not. A line is proved when a test that states it passed and none failed;
 * one that is measured (tagged `P`, or stated by a row) when the rows that state it are all within bounds.
 */
export function countSection(section, lines, stated, rows) {
  const proved = []
  const open = []
  for (const [number, tag] of Object.entries(lines)) {
    const name = `${section}.${number}`
    const stating = rows.filter(({ acceptance = [] }) => acceptance.includes(name))
    const isMeasured = tag === 'P' || stating.length > 0
    const isProved = isMeasured ? isWithinBounds(stating) : isPassed(stated.get(name))
    ;(isProved ? proved : open).push(name)
  }
  return { section, total: proved.length + open.length, proved, open }
}

function isPassed(entry) {
  return entry !== undefined && entry.passed.length > 0 && entry.failed.length === 0
}

function isWithinBounds(rows) {
  return rows.length > 0 && rows.every(({ ok }) => ok)
}

/** S3.118: every test passes, and they run at least 90 % of the lines of each part of the approval code. */
export function coverageRow(results, parts) {
  const isGreen =
    results.numFailedTests === 0 && results.testResults.every(({ status }) => status !== 'failed')
  return {
    acceptance: ['S3.118'],
    ok: isGreen && parts.length > 0 && parts.every(({ percent }) => percent >= 90),
  }
}

/** The folders of a coverage summary (`json-summary`), as `{ folder, percent }` of lines, worst first. */
export function coverageByFolder(summary, root) {
  const lines = new Map()
  for (const [file, { lines: counted }] of Object.entries(summary)) {
    if (file === 'total') continue
    const folder = file
      .slice(root.length + 1)
      .split('/')
      .slice(0, -1)
      .join('/')
    const sum = lines.get(folder) ?? { total: 0, covered: 0 }
    lines.set(folder, { total: sum.total + counted.total, covered: sum.covered + counted.covered })
  }
  return [...lines]
    .map(([folder, { total, covered }]) => ({ folder, percent: total === 0 ? 100 : (100 * covered) / total }))
    .sort((a, b) => a.percent - b.percent)
}

/** Numbers in a row as ranges: `S0.1-3 S0.7`. */
export function inRanges(names) {
  const ranges = []
  for (const name of names) {
    const [section, text] = name.split('.')
    const number = Number(text)
    const last = ranges.at(-1)
    if (last?.section === section && last.to === number - 1) last.to = number
    else ranges.push({ section, from: number, to: number })
  }
  return ranges
    .map(({ section, from, to }) => (from === to ? `${section}.${from}` : `${section}.${from}-${to}`))
    .join(' ')
}
