/** Milliseconds one call takes: the median of `runs` after a warm-up. */
export async function measure(work, { warmup = 2, runs = 5 } = {}) {
  for (let i = 0; i < warmup; i++) await work()
  const times = []
  for (let i = 0; i < runs; i++) {
    globalThis.gc?.()
    const start = performance.now()
    await work()
    times.push(performance.now() - start)
  }
  return times.sort((a, b) => a - b)[Math.floor(runs / 2)]
}

/** The exponent of growth: the slope of log time over log size, by least squares. 1 is linear, 2 is quadratic. */
export function exponent(points) {
  const xs = points.map(({ size }) => Math.log(size))
  const ys = points.map(({ ms }) => Math.log(ms))
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [mx, my] = [mean(xs), mean(ys)]
  const over = xs.reduce((sum, x, i) => sum + (x - mx) * (ys[i] - my), 0)
  return over / xs.reduce((sum, x) => sum + (x - mx) ** 2, 0)
}

/** One table as Markdown. */
export function table(title, columns, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [`### ${title}`, '', line(columns), line(columns.map(() => '---:')), ...rows.map(line), ''].join(
    '\n',
  )
}
