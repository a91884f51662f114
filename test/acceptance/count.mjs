// Which numbered lines of the acceptance checklist are proved: pure functions over the results of a test run and of the benchmark.

/** The numbers that a name states, as `S4.14`; a range as `S4.82-S4.90` or `S4.82-90` states all of its numbers. */
export function numbersIn(name) {
  const found = []
  for (const match of name.matchAll(/\b(U|E|S[0-4])\.(\d+)(?:\s?[-–]\s?(?:\1\.)?(\d+))?/g)) {
    const [, section, first, last = first] = match
    for (let at = Number(first); at <= Number(last); at += 1) found.push(`${section}.${at}`)
  }
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
 * one about speed (`P`) when the benchmark's rows that state it are all within bounds.
 */
export function countSection(section, lines, stated, benchRows) {
  const proved = []
  const open = []
  for (const [number, tag] of Object.entries(lines)) {
    const name = `${section}.${number}`
    const isProved = tag === 'P' ? isWithinBounds(name, benchRows) : isPassed(stated.get(name))
    ;(isProved ? proved : open).push(name)
  }
  return { section, total: proved.length + open.length, proved, open }
}

function isPassed(entry) {
  return entry !== undefined && entry.passed.length > 0 && entry.failed.length === 0
}

function isWithinBounds(name, rows) {
  const stating = rows.filter(({ acceptance = [] }) => acceptance.includes(name))
  return stating.length > 0 && stating.every(({ ok }) => ok)
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
