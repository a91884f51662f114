import { expect, test } from 'vitest'
import { countSection, coverageByFolder, coverageRow, inRanges, numbersIn, statedBy } from './count.mjs'

const run = (...tests: [name: string, status: string][]) => ({
  testResults: [{ assertionResults: tests.map(([fullName, status]) => ({ fullName, status })) }],
})

test('a name states single numbers and ranges, with the section said once or twice', () => {
  expect(numbersIn('S4.14 U.3 START creates a part')).toEqual(['S4.14', 'U.3'])
  expect(numbersIn('S4.82-S4.85 and S0.54–57: bindings')).toEqual([
    'S4.82',
    'S4.83',
    'S4.84',
    'S4.85',
    'S0.54',
    'S0.55',
    'S0.56',
    'S0.57',
  ])
  expect(numbersIn('T3 T40 and no T-shirt')).toEqual(['T.3', 'T.40'])
  expect(numbersIn('T31 H12 a structured reply')).toEqual(['T.31', 'H.12'])
  expect(numbersIn('V18 W4 a mandate and its preview')).toEqual(['V.18', 'W.4'])
  expect(numbersIn('AG-UI 1.0, the S4 flow, ES2022.1')).toEqual([])
})

test('a line is proved by a test that passed, and by none that failed or was skipped', () => {
  const stated = statedBy(
    run(['U.1 a', 'passed'], ['U.2 b', 'failed'], ['U.2 c', 'passed'], ['U.3 d', 'skipped']),
  )
  const { proved, open, total } = countSection('U', { 1: 'U', 2: 'I', 3: 'I', 4: 'T' }, stated, [])
  expect([proved, open, total]).toEqual([['U.1'], ['U.2', 'U.3', 'U.4'], 4])
})

test('a line about speed is proved by the benchmark alone, and only within bounds', () => {
  const stated = statedBy(run(['S3.113 the cache is fast', 'passed'], ['S3.114 the gate too', 'passed']))
  const rows = [
    { acceptance: ['S3.113'], ok: true },
    { acceptance: ['S3.113', 'S3.114'], ok: false },
    { acceptance: ['S3.115'], ok: true },
  ]
  const { proved, open } = countSection('S3', { 113: 'P', 114: 'P', 115: 'P' }, stated, rows)
  expect([proved, open]).toEqual([['S3.115'], ['S3.113', 'S3.114']])
})

test('the line about coverage holds when every test passed and each folder has 90 % of its lines run', () => {
  const file = (total: number, covered: number) => ({ lines: { total, covered } })
  const folders = coverageByFolder(
    {
      total: file(40, 30),
      '/app/src/gate/a.ts': file(10, 10),
      '/app/src/gate/b.ts': file(10, 8),
      '/app/src/plan/c.ts': file(20, 17),
    },
    '/app',
  )
  expect(folders).toEqual([
    { folder: 'src/plan', percent: 85 },
    { folder: 'src/gate', percent: 90 },
  ])
  const green = { numFailedTests: 0, testResults: [{ status: 'passed', assertionResults: [] }] }
  expect(coverageRow(green, folders).ok).toBe(false)
  expect(coverageRow(green, [{ percent: 90 }]).ok).toBe(true)
  expect(coverageRow(green, []).ok).toBe(false)
  expect(coverageRow({ ...green, numFailedTests: 1 }, [{ percent: 100 }]).ok).toBe(false)
  expect(
    coverageRow({ numFailedTests: 0, testResults: [{ status: 'failed', assertionResults: [] }] }, [
      { percent: 100 },
    ]).ok,
  ).toBe(false)
  const { proved } = countSection('S3', { 118: 'I' }, new Map(), [coverageRow(green, [{ percent: 91 }])])
  expect(proved).toEqual(['S3.118'])
})

test('numbers in a row are told as ranges', () => {
  expect(inRanges(['S0.1', 'S0.2', 'S0.3', 'S0.7', 'S1.8'])).toBe('S0.1-3 S0.7 S1.8')
})
