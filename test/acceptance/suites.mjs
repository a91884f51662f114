// How many tests of the suites for stores ran on each store: pure functions over the names of tests. A suite adds the name of its store to
// each of its tests, as "(sqlThreads on PGlite)" or "(memoryLedger)".
const suites = { Threads: 'threads', Ledger: 'ledger', RunLog: 'run log' }

/** Each of these runs all three suites; any other store may have fewer suites. */
export const stores = ['memory', 'SQLite', 'PGlite', 'PostgreSQL by pg', 'libSQL', 'Redis']

/** The names of tests as `{ [store]: { threads, ledger, 'run log' } }`, each the number of its tests. */
export function countSuites(names) {
  const counts = Object.fromEntries(stores.map((store) => [store, {}]))
  for (const name of names) {
    const [, kind, suite, database] =
      /\((?:T\d+ )?(memory|file|sql|redis)(Threads|Ledger|RunLog)(?: (?:on|with) ([^()]+))?\)$/.exec(name) ??
      []
    if (kind === undefined) continue
    const store = {
      memory: 'memory',
      redis: 'Redis',
      sql: database,
      file: database ? `file, ${database}` : 'file',
    }[kind]
    counts[store] ??= {}
    counts[store][suites[suite]] = (counts[store][suites[suite]] ?? 0) + 1
  }
  return counts
}

/** What is wrong: stores that run fewer tests of a suite than another. */
export function unequal(counts) {
  return Object.values(suites).flatMap((suite) => {
    const most = Math.max(0, ...Object.values(counts).map((of) => of[suite] ?? 0))
    return Object.entries(counts).flatMap(([store, { [suite]: count }]) => {
      const isLeftOut = count === undefined && !stores.includes(store)
      return isLeftOut || (count === most && most > 0)
        ? []
        : [`${store}: ${count ?? 0} of ${most} tests of ${suite}`]
    })
  })
}

/** The counts as a table in plain text. */
export function suiteTable(counts) {
  const columns = Object.values(suites)
  const row = (first, cells) => first.padEnd(30) + cells.map((cell) => String(cell).padStart(9)).join('')
  const rows = Object.entries(counts).map(([store, of]) =>
    row(
      store,
      columns.map((suite) => of[suite] ?? '-'),
    ),
  )
  return [row('tests of each store', columns), ...rows].join('\n')
}
