/** The middle of some numbers. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/**
 * Milliseconds that each of some works takes, `{ least, median }`: of many rounds in which they take turns, so that what else the
 * machine does meets all of them. A sample repeats its work until it has lasted `sampleMs`, so that no clock or collector decides;
 * the first rounds only warm up. `least` is what to compare: nothing makes work faster than it is.
 */
export async function takeTurns(works, { rounds, warmup = 3, sampleMs = 40 }) {
  const times = works.map(() => [])
  for (let round = 0; round < warmup + rounds; round++) {
    for (const [index, work] of works.entries()) {
      const ms = await sample(work, sampleMs)
      if (round >= warmup) times[index].push(ms)
    }
  }
  return times.map((each) => ({ median: median(each), least: Math.min(...each) }))
}

async function sample(work, sampleMs) {
  globalThis.gc?.()
  const start = performance.now()
  for (let count = 1; ; count++) {
    await work()
    const ms = performance.now() - start
    if (ms >= sampleMs) return ms / count
  }
}

/**
 * The exponent of growth over the four largest sizes: the slope of log time over log size, by least squares. 1 is linear, 2 is
 * quadratic. `undefined` for fewer than two sizes.
 */
export function exponent(points) {
  const last = [...points].sort((a, b) => a.size - b.size).slice(-4)
  if (last.length < 2) return undefined
  const xs = last.map(({ size }) => Math.log(size))
  const ys = last.map(({ ms }) => Math.log(ms))
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [mx, my] = [mean(xs), mean(ys)]
  const over = xs.reduce((sum, x, i) => sum + (x - mx) * (ys[i] - my), 0)
  return over / xs.reduce((sum, x) => sum + (x - mx) ** 2, 0)
}

/** A run that starts when the first thing to be measured is handed over, and ends with `stop`. */
function createClock() {
  let started
  let ms
  return {
    start: () => {
      started ??= performance.now()
    },
    stop: () => {
      ms ??= performance.now() - started
    },
    get ms() {
      if (!(ms >= 0)) throw new Error('the clock was not started and stopped')
      return ms
    },
  }
}

/**
 * Runs and checks one session, and gives the milliseconds that its work took. Nothing is collected before it: V8 forgets what it compiled
 * for objects that are gone, and a page that streams is not made to collect either.
 */
export async function timeSession(session, check) {
  const clock = createClock()
  try {
    await session.run(clock)
    clock.stop()
    check(await session.result())
  } finally {
    session.close?.()
  }
  return clock.ms
}

/** What a repetition may cost (ms) before a contender is measured once instead of several times, or not at all. */
const patience = { several: 6_000, once: 60_000 }

/** Work this short (ms, all repetitions together) is repeated more often, so that it is warm and what else the machine does cancels out. */
const short = 500

/**
 * The same work for every contender: for each size a warm-up and at least `runs` rounds, in each of which all of them take turns, so
 * that what else the machine does meets all of them. Gives `{ contender, size, count, ms, runs }`, or `{ contender, size, skipped }`
 * where a contender that grows faster than its input would hold up everybody else.
 *
 * `measure(contender, size)` does the work once and gives its milliseconds.
 */
export async function compare({
  contenders,
  sizes,
  count,
  measure,
  runs = 5,
  mostRuns = 25,
  warmup = 4,
  log = () => {},
}) {
  const points = []
  for (const size of sizes) {
    const once = (contender) => measureAs(contender, () => measure(contender, size))
    const plans = contenders.map((contender) => planFor(points, contender, size, runs))
    const repeated = plans.filter(({ least }) => least >= runs)
    const work = ({ contender }) => once(contender)
    await takeRounds(repeated, ({ warmup }) => warmup, { least: warmup, most: mostRuns, work })
    await takeRounds(repeated, ({ times }) => times, { least: runs, most: mostRuns, work })
    // last, for an engine that waits for long forgets what it compiled
    for (const plan of plans.filter(({ least }) => least > 0 && least < runs))
      plan.times.push(await once(plan.contender))
    for (const { contender, times } of plans) {
      const point = { contender: contender.id, size, count: count(size) }
      if (times.length > 0) points.push({ ...point, ms: median(times), runs: times.length })
      else points.push({ ...point, skipped: true })
    }
    log(`  ${size}`)
  }
  return points
}

/**
 * In how many processes, one after the other, each contender does the same work, by scale: what an engine makes of the same code
 * differs by a tenth and more from one process to the next, and stays so for as long as the process lives.
 */
export const inProcesses = { full: 3, quick: 1, tiny: 1 }

/** One point for the same work of the same contender in several processes: the median of them. */
export function mergePoints(passes) {
  const [first, ...later] = passes
  return first.map((point) => {
    const again = later.flatMap((points) =>
      points.filter(({ contender, size }) => contender === point.contender && size === point.size),
    )
    const measured = [point, ...again].filter(({ skipped }) => !skipped)
    if (measured.length < 2) return point
    return {
      ...point,
      ms: median(measured.map(({ ms }) => ms)),
      runs: measured.reduce((sum, { runs }) => sum + runs, 0),
    }
  })
}

/** What a contender did wrong is thrown with its name. */
async function measureAs({ name }, measure) {
  try {
    return await measure()
  } catch (cause) {
    throw new Error(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** How often a contender takes part at this size, by what the sizes before have cost it. */
function planFor(points, contender, size, runs) {
  const forecast = forecastOf(points, contender, size)
  const least = forecast > patience.once ? 0 : forecast > patience.several ? 1 : runs
  return { contender, least, warmup: [], times: [] }
}

/**
 * Rounds until each has worked long enough; those that are quick go on together, so that each of them has as many rounds as the others.
 * The first ones come after a pause in which the slow work, and take longer for that.
 */
async function takeRounds(plans, timesOf, { least, most, work }) {
  const wantsMore = (plan) => isTooLittle(timesOf(plan), least, most)
  while (plans.some(wantsMore)) {
    const areQuickWanting = plans.some((plan) => wantsMore(plan) && isQuick(timesOf(plan), least))
    for (const plan of plans) {
      const times = timesOf(plan)
      if (wantsMore(plan) || (areQuickWanting && isQuick(times, least))) times.push(await work(plan))
    }
  }
}

function isTooLittle(times, least, most) {
  if (times.length < least) return true
  return times.length < most && sumOf(times) < short
}

/** Whether the least number of its runs would be short work. */
function isQuick(times, least) {
  return sumOf(times) * least < short * times.length
}

function sumOf(times) {
  return times.reduce((sum, ms) => sum + ms, 0)
}

/** What the next size will cost if cost goes on growing as it did between the last two. */
function forecastOf(points, contender, size) {
  const [before, last] = points.filter((point) => point.contender === contender.id).slice(-2)
  const latest = last ?? before
  if (!latest) return 0
  if (latest.skipped) return Number.POSITIVE_INFINITY
  const power = last ? Math.log(last.ms / before.ms) / Math.log(last.size / before.size) : 1
  return latest.ms * (size / latest.size) ** Math.min(2.2, Math.max(0, power))
}
