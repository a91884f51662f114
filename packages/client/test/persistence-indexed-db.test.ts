import { createChatState, readRecord } from '@countersign/core'
import { expect, test } from 'vitest'
import { indexedDb } from '../src/indexed-db.js'

// What it does where there is an IndexedDB is tested in a browser: test/browser/persistence.test.ts

test('where there is no IndexedDB it can be made, and each act says what is missing', async () => {
  const { load, save, remove } = indexedDb()
  const record = readRecord(createChatState())
  for (const act of [() => load('a'), () => save('a', record), () => remove('a')]) {
    await expect(act()).rejects.toMatchObject({
      code: 'persistence-unavailable',
      message: expect.stringContaining('no IndexedDB'),
    })
  }
})

test('a wrong option is named at construction', () => {
  const wrong = JSON.parse('{"name":"","migrate":"x"}')
  for (const option of ['name', 'migrate']) {
    const make = () => indexedDb({ [option]: wrong[option] })
    expect(make).toThrow(expect.objectContaining({ code: 'invalid-option', data: { option } }))
  }
})
