import { expect, test } from 'vitest'
import { editorText, readEdited } from '../src/edit.js'

const mail = { to: 'a@example.org', subject: 'Hello', draft: 7 }

test('the editor gets all arguments, or only those that may be changed', () => {
  expect(JSON.parse(editorText({ keys: 'all', input: mail }))).toEqual(mail)
  expect(JSON.parse(editorText({ keys: ['subject'], input: mail }))).toEqual({ subject: 'Hello' })
})

test('what was changed comes back with what could not be', () => {
  const edited = readEdited({ keys: ['subject'], input: mail }, '{ "subject": "Bye" }')
  expect(edited).toEqual({ kind: 'changed', input: { ...mail, subject: 'Bye' } })
})

test('what was only saved or laid out otherwise is unchanged', () => {
  for (const text of [editorText({ keys: 'all', input: mail }), JSON.stringify(mail)])
    expect(readEdited({ keys: 'all', input: mail }, text)).toEqual({ kind: 'unchanged' })
})

test('what is no JSON, no object or not to be changed is unusable, and says why', () => {
  const read = (text: string) => readEdited({ keys: ['subject'], input: mail }, text)
  expect(read('')).toMatchObject({ kind: 'unusable', message: 'What you saved is not JSON.' })
  expect(read('[]')).toMatchObject({ kind: 'unusable' })
  expect(read('{"to":"b@example.org"}')).toMatchObject({ message: 'Only these may be changed: subject.' })
})
