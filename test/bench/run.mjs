// Prints what things cost, as Markdown. Build first (`pnpm build`), then `pnpm bench [word]`: only titles with that word.
import { exponent, measure, table } from './measure.mjs'
import growth from './workloads/growth.mjs'

process.env.NODE_ENV = 'production'
const [only = ''] = process.argv.slice(2)

for (const { title, unit, sizes, prepare } of [...growth].filter((work) => work.title.includes(only))) {
  const points = []
  for (const size of sizes) {
    const { count, work } = prepare(size)
    points.push({ size, count, ms: await measure(work) })
  }
  const rows = points.map(({ size, count, ms }) => [
    `${size} ${unit}`,
    String(count),
    ms.toFixed(1),
    ((ms * 1000) / count).toFixed(2),
  ])
  console.log(
    table(
      `${title} (growth exponent ${exponent(points).toFixed(2)})`,
      ['size', 'events', 'ms', 'us per event'],
      rows,
    ),
  )
}
