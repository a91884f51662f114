import type { SuiteRunner } from '../runner.js'
import { codeOf, type Migrate, type RecordStoreUnderTest, rich, type Spec, saying } from './bench.js'

type SpecWith = (migrate: Migrate | undefined) => Spec<RecordStoreUnderTest>

const old = JSON.stringify({ version: 0, record: { said: 'long ago' } })
const newer = JSON.stringify({ version: 2, record: { entirely: 'different' } })

const fromVersion0: Migrate = (value, version) => {
  const isOld = typeof value === 'object' && value !== null && 'said' in value
  return version === 0 && isOld ? saying(String(value.said)) : undefined
}

export function versioning(specWith: SpecWith, expect: SuiteRunner['expect']): void {
  const reportsOld = async (made: RecordStoreUnderTest) => {
    await made.plant('a', old)
    expect(await codeOf(made.persistence.load('a'))).toEqual('persistence-corrupt')
    expect(await made.aside('a')).toEqual([old])
    expect(await made.persistence.load('a')).toEqual(undefined)
  }

  specWith(fromVersion0)('what an older version stored is migrated', async (made) => {
    await made.plant('a', old)
    expect(await made.persistence.load('a')).toEqual(saying('long ago'))
    expect(await made.stored('a')).toEqual(old)
    await made.persistence.save('a', saying('today'))
    expect(await made.persistence.load('a')).toEqual(saying('today'))
  })

  specWith(fromVersion0)('a record of the present version is not migrated', async ({ persistence }) => {
    await persistence.save('a', rich)
    expect(await persistence.load('a')).toEqual(rich)
  })

  specWith(undefined)('without a migration what an older version stored is moved aside', reportsOld)
  specWith(() => undefined)('what a migration makes nothing of is moved aside', reportsOld)
  specWith(() => {
    throw new Error('cannot')
  })('what a migration throws at is moved aside', reportsOld)
  specWith(() => JSON.parse('{"version":1}'))(
    'a migration that makes no record is found out and what it was given moved aside',
    reportsOld,
  )

  specWith(() => saying('never'))('what a newer version stored is reported and not touched', async (made) => {
    const { persistence } = made
    await made.plant('a', newer)
    expect(await codeOf(persistence.load('a'))).toEqual('persistence-unavailable')
    expect(await codeOf(persistence.save('a', rich))).toEqual('persistence-unavailable')
    expect(await made.stored('a')).toEqual(newer)
    expect(await made.aside('a')).toEqual([])
    await persistence.save('b', rich)
    expect(await persistence.load('b')).toEqual(rich)
    await persistence.remove('a')
    expect(await persistence.load('a')).toEqual(undefined)
  })
}
