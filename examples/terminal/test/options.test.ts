import { expect, test } from 'vitest'
import { decideUnasked, type Request } from '../src/decide.js'
import { exitCodeOf } from '../src/exit-code.js'
import { parseMessage } from '../src/messages.js'
import { parseCommand } from '../src/options.js'

test('without arguments it is a conversation with the agent of this process', () => {
  expect(parseCommand([])).toEqual({
    kind: 'chat',
    settings: { agent: { kind: 'here', folder: undefined }, once: undefined, yesTo: new Set() },
  })
})

test('S3.106 --yes-to names tools, one each time', () => {
  const command = parseCommand(['--yes-to', 'a', '--yes-to=b', '--url', 'http://localhost:1/chat'])
  expect(command).toMatchObject({ settings: { yesTo: new Set(['a', 'b']), agent: { kind: 'server' } } })
})

test('what cannot be meant is refused, with the way out', () => {
  const wrong = [
    ['--yes'],
    ['hello'],
    ['--url', 'file:///etc'],
    ['--url', 'x'],
    ['--once', ' '],
    ['--yes-to', ''],
  ]
  for (const args of [...wrong, ['--url', 'http://a', '--folder', 'b'], ['--folder=']])
    expect(parseCommand(args)).toMatchObject({ kind: 'invalid', message: expect.stringMatching(/\S/) })
})

test('the exit code tells interruption, failure and denial for want of a person apart', () => {
  const ending = { interrupted: false, failed: false, deniedUnasked: 0 }
  expect(exitCodeOf(ending)).toBe(0)
  expect(exitCodeOf({ ...ending, deniedUnasked: 2 })).toBe(3)
  expect(exitCodeOf({ ...ending, failed: true, deniedUnasked: 2 })).toBe(1)
  expect(exitCodeOf({ ...ending, failed: true, interrupted: true })).toBe(130)
})

test('a line is a message or a command', () => {
  expect(parseMessage('  hello ')).toEqual({ kind: 'message', text: 'hello' })
  expect(['', ' ', '/retry', '/quit'].map((line) => parseMessage(line).kind)).toEqual([
    'nothing',
    'nothing',
    'retry',
    'quit',
  ])
})

test('S3.106 where nobody can be asked a request is denied, but for a tool that was named, and then for this call only', () => {
  const choice = { label: '', disabled: false, response: { id: 'a1', approved: true } }
  const view = {
    id: 'a1',
    toolCallId: 'c1',
    status: 'open',
    askedBy: [],
    disabled: false,
    title: { segments: [], text: '', hidden: 0, lines: 0, suspicious: false },
    message: undefined,
    preview: undefined,
    arguments: undefined,
    hidden: 0,
    suspicious: false,
    choices: [
      { ...choice, option: 'once' },
      { ...choice, option: 'session' },
    ],
    mandates: [],
    edit: { status: 'none' },
    expiresAt: undefined,
    approved: undefined,
    delivery: undefined,
    problem: undefined,
  } as const
  const request: Request = {
    view,
    viewOf: () => view,
    toolName: 'delete_file',
    previewEdits: undefined,
    more: 0,
  }
  const denied = decideUnasked(request, new Set(['delete', 'DELETE_FILE', '*']))
  expect(denied).toMatchObject({ response: { approved: false }, deniedUnasked: true })
  expect(denied.line).toContain('there is no terminal to ask in')
  const approved = decideUnasked(request, new Set(['delete_file']))
  expect(approved).toMatchObject({ response: { approved: true, scope: 'once' }, deniedUnasked: false })
})
