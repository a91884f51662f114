import type { MessagePart, UIMessage } from '@countersign/core'
import { expect, test } from 'vitest'
import { createTranscript } from '../src/transcript.js'

const says = (...parts: MessagePart[]): UIMessage => ({ id: 'm1', role: 'assistant', parts })
const text = (content: string): MessagePart => ({ type: 'text', text: content })

/** What is written when a text arrives up to each of its lengths, and then has ended. */
function grown(content: string): string {
  const transcript = createTranscript()
  let written = ''
  for (let end = 1; end <= content.length; end++)
    written += transcript.next({ messages: [says(text(content.slice(0, end)))], isLoading: true })
  return written + transcript.next({ messages: [says(text(content))], isLoading: false })
}

test('a text that arrives unit by unit is written once, and no character is divided', () => {
  for (const content of ['Hello, world.', '漢字かな', 'a👨‍👩‍👧‍👦b 🇫🇷 e\u0301 ✈️'])
    expect(grown(content)).toBe(`${content}\n`)
})

test('S3.108 control sequences in what the agent says are written out, also when they arrive in pieces', () => {
  expect(grown('a\u001b[2Jb\u202ec')).toBe('a⟨U+001B⟩[2Jb⟨U+202E⟩c\n')
})

test('a text begins on a line of its own behind a call, and a call behind a text', () => {
  const transcript = createTranscript()
  const call: MessagePart = {
    type: 'tool-call',
    id: 'c1',
    name: 'list_files',
    arguments: '{}',
    input: {},
    state: 'complete',
    output: 1,
  }
  const whole = says(text('One.'), call, text('Two.'))
  expect(transcript.next({ messages: [whole], isLoading: false })).toBe(
    'One.\n* list_files {}\n  done: 1\nTwo.\n',
  )
  expect(transcript.next({ messages: [whole], isLoading: false })).toBe('')
})

test('what the person said is not repeated', () => {
  const said: UIMessage = { id: 'u1', role: 'user', parts: [text('Hi.')] }
  expect(createTranscript().next({ messages: [said], isLoading: false })).toBe('')
})
