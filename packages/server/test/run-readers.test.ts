import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { readersOf, runReaders, stopNow } from '../src/http/readers.js'
import { runKey } from '../src/scope/run-context.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a run that nobody reads stops once its time has passed since the last reader went', () => {
  const stop = vi.fn()
  const run = runReaders('run', 1000, stop)
  const leave = run.join()
  vi.advanceTimersByTime(5000)
  leave()
  vi.advanceTimersByTime(999)
  expect(stop).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(stop).toHaveBeenCalledTimes(1)
  run.end()
})

test('a reader that takes the run up in time keeps it going, however long it reads, and the time counts anew', () => {
  const stop = vi.fn()
  const run = runReaders('run', 1000, stop)
  run.join()()
  vi.advanceTimersByTime(999)
  const leave = readersOf.get('run')?.join()
  vi.advanceTimersByTime(60_000)
  leave?.()
  vi.advanceTimersByTime(999)
  expect(stop).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(stop).toHaveBeenCalledTimes(1)
  run.end()
})

test('of several readers the last to go counts, and one that goes twice goes once', () => {
  const stop = vi.fn()
  const run = runReaders('run', 0, stop)
  const [first, second] = [run.join(), run.join()]
  first()
  first()
  expect(stop).not.toHaveBeenCalled()
  second()
  expect(stop).toHaveBeenCalledTimes(1)
  run.end()
})

test('the end of a run leaves no timer, and nobody joins or stops it any more', () => {
  const stop = vi.fn()
  const run = runReaders('run', 1000, stop)
  const [first, second] = [run.join(), run.join()]
  first()
  run.end()
  second()
  expect([vi.getTimerCount(), readersOf.get('run')]).toEqual([0, undefined])
  vi.advanceTimersByTime(5000)
  expect(stop).not.toHaveBeenCalled()
})

test('a stop that comes before its run is kept however many others send', () => {
  const key = (subject: string, runId: string) => runKey({ kind: 'subject', id: subject }, 'thread', runId)
  stopNow(key('ann', 'run'))
  for (let n = 0; n < 1000; n++) stopNow(key('mallory', `${n}`))
  // Other tests of this process may have left some: then a few more of the first ones are gone.
  const stopped = ['ann run', 'mallory 0', 'mallory 500', 'mallory 999'].map((run) => {
    const [subject = '', runId = ''] = run.split(' ')
    const stop = vi.fn()
    runReaders(key(subject, runId), 0, stop).end()
    return stop.mock.calls.length
  })
  expect(stopped).toEqual([1, 0, 1, 1])
})

test('a stop costs the same whether few others are kept or as many as are kept at all', () => {
  const key = (nth: number) => runKey({ kind: 'subject', id: 'mallory' }, 'thread', `${nth}`)
  const costOf = (from: number, to: number) => {
    const { user } = process.cpuUsage()
    for (let nth = from; nth < to; nth++) stopNow(key(nth))
    return process.cpuUsage().user - user
  }
  const costs = Array.from({ length: 5 }, () => {
    const cost = { few: costOf(0, 1000), full: costOf(1000, 2000) }
    for (let nth = 0; nth < 2000; nth++) runReaders(key(nth), 0, () => {}).end()
    return cost
  })
  const least = (which: 'few' | 'full') => Math.min(...costs.map((cost) => cost[which]))
  expect(least('full')).toBeLessThan(10 * Math.max(least('few'), 1000))
})
