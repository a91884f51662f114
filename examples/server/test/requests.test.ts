import { expect, test } from 'vitest'
import { exampleRequests, parseRequests, type Request } from '../src/requests.js'

const understood: [string, Request[]][] = [
  ['help', [{ kind: 'help' }]],
  ['What can you do?', [{ kind: 'help' }]],
  ['hello there', [{ kind: 'greeting' }]],
  ['Thank you!', [{ kind: 'thanks' }]],
  ['list files', [{ kind: 'list', folder: '' }]],
  ['What files are there?', [{ kind: 'list', folder: '' }]],
  ['List the files in reports', [{ kind: 'list', folder: 'reports' }]],
  ['list all files in the folder logs/', [{ kind: 'list', folder: 'logs' }]],
  ['show me the files', [{ kind: 'list', folder: '' }]],
  ['ls logs', [{ kind: 'list', folder: 'logs' }]],
  ['What is in reports?', [{ kind: 'list', folder: 'reports' }]],
  ['read notes.txt', [{ kind: 'read', path: 'notes.txt' }]],
  ['Please show me reports/quarter-3.md.', [{ kind: 'read', path: 'reports/quarter-3.md' }]],
  ['read "my notes.txt"', [{ kind: 'read', path: 'my notes.txt' }]],
  ['search for crane', [{ kind: 'search', text: 'crane' }]],
  ['find "tide gauge"', [{ kind: 'search', text: 'tide gauge' }]],
  ['write "Back at noon." to door.txt', [{ kind: 'write', path: 'door.txt', content: 'Back at noon.' }]],
  ['Write go to the pier to plan.txt', [{ kind: 'write', path: 'plan.txt', content: 'go to the pier' }]],
  ['create a.txt with hello', [{ kind: 'write', path: 'a.txt', content: 'hello' }]],
  ['write a list of all files to index.md', [{ kind: 'write-index', path: 'index.md' }]],
  ['rename todo.md to tasks.md', [{ kind: 'move', from: 'todo.md', to: 'tasks.md' }]],
  ['move a.txt to old/a.txt', [{ kind: 'move', from: 'a.txt', to: 'old/a.txt' }]],
  ['delete a.txt, b.txt and c.txt', [{ kind: 'delete', paths: ['a.txt', 'b.txt', 'c.txt'] }]],
  ['delete a.txt and delete b.txt', [{ kind: 'delete', paths: ['a.txt', 'b.txt'] }]],
  ['delete logs/*.log', [{ kind: 'delete', paths: ['logs/*.log'] }]],
  ['could you clean up the logs, please?', [{ kind: 'tidy-logs' }]],
  ['reset the workspace', [{ kind: 'restore' }]],
  ['measure the files in reports', [{ kind: 'measure', folder: 'reports' }]],
  ['count the lines', [{ kind: 'measure', folder: '' }]],
  ['find duplicate files', [{ kind: 'duplicates', folder: '' }]],
  ['show me the duplicates in logs/', [{ kind: 'duplicates', folder: 'logs' }]],
  ['add "Call Mara" to todo.md', [{ kind: 'append', path: 'todo.md', line: 'Call Mara' }]],
  ['clear the folder logs', [{ kind: 'clear', folder: 'logs' }]],
  ['empty "old logs"', [{ kind: 'clear', folder: 'old logs' }]],
  [
    'Pay 80 EUR to Crane Ltd',
    [{ kind: 'pay', amount: 80, currency: 'EUR', to: 'Crane Ltd', reference: 'without a number' }],
  ],
  [
    'pay 9.50 usd to Acme for invoice 12',
    [{ kind: 'pay', amount: 9.5, currency: 'USD', to: 'Acme', reference: 'invoice 12' }],
  ],
  ['Restore the sample files', [{ kind: 'restore' }]],
  ['mail the team', [{ kind: 'mail', to: 'team@example.org', about: { kind: 'summary' } }]],
  ['mail the team a summary', [{ kind: 'mail', to: 'team@example.org', about: { kind: 'summary' } }]],
  ['send a summary to mara', [{ kind: 'mail', to: 'mara@example.org', about: { kind: 'summary' } }]],
  [
    'mail notes.txt to ann@example.org',
    [{ kind: 'mail', to: 'ann@example.org', about: { kind: 'file', path: 'notes.txt' } }],
  ],
  [
    'email ann@example.org "See you."',
    [{ kind: 'mail', to: 'ann@example.org', about: { kind: 'text', text: 'See you.' } }],
  ],
  [
    'send a mail to ann@example.org saying see you at noon',
    [{ kind: 'mail', to: 'ann@example.org', about: { kind: 'text', text: 'see you at noon' } }],
  ],
  [
    'Tidy up the logs, then mail the team a summary',
    [{ kind: 'tidy-logs' }, { kind: 'mail', to: 'team@example.org', about: { kind: 'summary' } }],
  ],
  [
    'read notes.txt and then delete notes.txt; then list files',
    [
      { kind: 'read', path: 'notes.txt' },
      { kind: 'delete', paths: ['notes.txt'] },
      { kind: 'list', folder: '' },
    ],
  ],
  [
    'write "first, then second" to order.txt',
    [{ kind: 'write', path: 'order.txt', content: 'first, then second' }],
  ],
  ['sing me a song', [{ kind: 'unknown', text: 'sing me a song' }]],
  ['', [{ kind: 'unknown', text: '' }]],
]

test.each(understood)('understands %j', (text, requests) => {
  expect(parseRequests(text)).toEqual(requests)
})

test('every example it offers is one it understands', () => {
  for (const example of exampleRequests) {
    expect(parseRequests(example).map((request) => request.kind)).not.toContain('unknown')
  }
})

test('the examples cover every kind of request that does something', () => {
  const kinds = new Set(exampleRequests.flatMap(parseRequests).map((request) => request.kind))
  expect([...kinds].sort()).toEqual(
    [
      'append',
      'clear',
      'delete',
      'duplicates',
      'list',
      'mail',
      'measure',
      'move',
      'pay',
      'read',
      'restore',
      'search',
      'tidy-logs',
      'write',
      'write-index',
    ].sort(),
  )
})

test('F12 a text that is too long for the patterns is not read by them', () => {
  for (const unit of [' ', ', ', 'to ', 'please ', '"', '.', 'show me the ', 'then ']) {
    const [request, ...others] = parseRequests(`write ${unit.repeat(60_000)}x`)
    expect(request).toMatchObject({ kind: 'unknown' })
    expect(others).toEqual([])
    expect(JSON.stringify(request).length).toBeLessThan(300)
  }
})
