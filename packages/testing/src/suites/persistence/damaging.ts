import type { SuiteRunner } from '../runner.js'
import { codeOf, type RecordStoreUnderTest, rich, type Spec, saying } from './bench.js'

const record = saying('kept')
const whole = JSON.stringify({ version: 1, record: rich })

/** Invalid stored texts, by kind of damage. */
const damages: Record<string, string> = {
  'nothing written': '',
  'cut short': whole.slice(0, -40),
  'no JSON': 'not json',
  null: 'null',
  'a number': '7',
  'an array': '[1]',
  'no envelope': JSON.stringify(record),
  'an envelope without a record': '{"version":1}',
  'a version that is no number': JSON.stringify({ version: '1', record }),
  'a version that is no whole number': JSON.stringify({ version: 1.5, record }),
  'a record of another version than its envelope': JSON.stringify({
    version: 1,
    record: { ...record, version: 2 },
  }),
  'no messages': JSON.stringify({ version: 1, record: { ...record, messages: undefined } }),
  'a message without parts': JSON.stringify({
    version: 1,
    record: { ...record, messages: [{ id: 'm', role: 'user' }] },
  }),
}

export function damaging(spec: Spec<RecordStoreUnderTest>, expect: SuiteRunner['expect']): void {
  for (const [damage, text] of Object.entries(damages)) {
    spec(`what is no record is reported and moved aside unchanged: ${damage}`, async (made) => {
      const { persistence } = made
      await made.plant('a', text)
      await persistence.save('b', record)
      expect(await codeOf(persistence.load('a'))).toEqual('persistence-corrupt')
      expect(await made.aside('a')).toEqual([text])
      expect(await persistence.load('a')).toEqual(undefined)
      await persistence.save('a', rich)
      expect(await persistence.load('a')).toEqual(rich)
      expect(await persistence.load('b')).toEqual(record)
      expect(await made.aside('a')).toEqual([text])
    })
  }

  spec('what is moved aside later stands beside what was moved aside earlier', async (made) => {
    await made.plant('a', 'first')
    await codeOf(made.persistence.load('a'))
    await made.plant('a', 'second')
    expect(await codeOf(made.persistence.load('a'))).toEqual('persistence-corrupt')
    expect(await made.aside('a')).toEqual(['first', 'second'])
  })

  spec('two loads of a damaged record at once lose nothing of it and move it once', async (made) => {
    await made.plant('a', 'damaged')
    const codes = await Promise.all([codeOf(made.persistence.load('a')), codeOf(made.persistence.load('a'))])
    expect(codes[0]).toEqual('persistence-corrupt')
    expect(await made.aside('a')).toEqual(['damaged'])
    expect(await made.persistence.load('a')).toEqual(undefined)
  })

  spec('removing a thread removes what was moved aside of it', async (made) => {
    await made.plant('a', 'damaged')
    await codeOf(made.persistence.load('a'))
    await made.persistence.remove('a')
    expect(await made.aside('a')).toEqual([])
  })

  spec('a record that does not fit is reported and leaves the earlier one', async (made) => {
    const { persistence } = made
    await persistence.save('a', rich)
    await made.fill()
    const huge = saying('0123456789'.repeat(100_000))
    expect(await codeOf(persistence.save('a', huge))).toEqual('persistence-full')
    expect(await codeOf(persistence.save('new', huge))).toEqual('persistence-full')
    expect(await persistence.load('a')).toEqual(rich)
    expect(await persistence.load('new')).toEqual(undefined)
  })

  spec('a damaged record in a full storage is reported and not lost', async (made) => {
    const text = 'x'.repeat(400_000)
    await made.plant('a', text)
    await made.fill()
    const code = await codeOf(made.persistence.load('a'))
    const left = [await made.stored('a'), await made.aside('a')]
    // A storage may lack space for the copy that moving makes.
    if (code === 'persistence-full') expect(left).toEqual([text, []])
    else expect([code, ...left]).toEqual(['persistence-corrupt', undefined, [text]])
  })

  spec('a record that is none is not saved', async (made) => {
    await made.persistence.save('a', rich)
    const untyped: { value: typeof rich } = { value: JSON.parse('{"version":1,"messages":[{}]}') }
    expect(await codeOf(made.persistence.save('a', untyped.value))).toEqual('invalid-argument')
    expect(await made.persistence.load('a')).toEqual(rich)
  })
}
