// A vitest reporter: the ten slowest test files, with the time for their imports.
const shown = 10

export default class SlowestReporter {
  onTestRunEnd(modules) {
    const files = modules.map((module) => {
      const { collectDuration, environmentSetupDuration, setupDuration, duration } = module.diagnostic()
      const importing = collectDuration + environmentSetupDuration + setupDuration
      return { name: module.relativeModuleId, importing, testing: duration, whole: importing + duration }
    })
    files.sort((a, b) => b.whole - a.whole)
    console.log(`The slowest of ${files.length} test files, in seconds:`)
    console.log('   whole  imports    tests')
    for (const { name, whole, importing, testing } of files.slice(0, shown))
      console.log(`${column(whole)} ${column(importing)} ${column(testing)}  ${name}`)
  }
}

const column = (ms) => (ms / 1000).toFixed(1).padStart(8)
