// A vitest reporter: prints what the binding suite (`describeBinding`) logged for the four bindings side by
// side, and fails if they do not have the same tests.
const frameworks = ['react', 'solid', 'vue', 'svelte']

const rows = [
  ['tests of the binding suite', /(\d+) tests of the binding suite/],
  ['200 messages, 2,000 deltas: updates of the streaming one', /(\d+) updates of the streaming message/],
  ['200 messages, 2,000 deltas: updates of all others', /message, (\d+) of others/],
]

export default class ParityReporter {
  #told = new Map(frameworks.map((name) => [name, '']))

  onUserConsoleLog({ content }) {
    for (const line of content.split('\n')) {
      const name = line.slice(0, line.indexOf(':'))
      if (this.#told.has(name)) this.#told.set(name, `${this.#told.get(name)}${line}\n`)
    }
  }

  onTestRunEnd(modules) {
    const columns = frameworks.map((name) => [...this.#numbersOf(name), passedIn(modules, name)])
    if (columns.every((column) => column[0] === undefined)) return
    const titles = [...rows.map(([title]) => title), 'of its tests, passed']
    printRow('', frameworks)
    for (const [at, title] of titles.entries())
      printRow(
        title,
        columns.map((column) => column[at] ?? '-'),
      )
    if (new Set(columns.map(([tests]) => tests)).size > 1) {
      console.log('The bindings do not have the same tests.')
      process.exitCode = 1
    }
  }

  #numbersOf(name) {
    return rows.map(([, pattern]) => pattern.exec(this.#told.get(name))?.[1])
  }
}

function passedIn(modules, name) {
  const own = modules.filter(({ moduleId }) => moduleId.includes(`packages/${name}/test/parity.test.`))
  const tests = own.flatMap(({ children }) => [...children.allTests('passed')])
  return String(tests.length)
}

function printRow(title, cells) {
  console.log(`${title.padEnd(58)}${cells.map((cell) => cell.padStart(8)).join('')}`)
}
