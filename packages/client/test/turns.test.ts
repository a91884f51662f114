import { type MessagePart, turnsOf, type UIMessage } from '@countersign/client'
import { expect, test } from 'vitest'

const message = (id: string, role: UIMessage['role'], ...texts: string[]): UIMessage => ({
  id,
  role,
  parts: texts.map((text) => ({ type: 'text', text })),
})

const asked = message('u1', 'user', 'tidy up')
const called = message('a1', 'assistant', 'I look.', 'Found.')
const done = message('a2', 'assistant', 'Done.')
const thanks = message('u2', 'user', 'thanks')

const shape = (messages: readonly UIMessage[]) =>
  turnsOf(messages).map(({ id, role, parts }) => [id, role, parts.map(textOf).join(' ')])

function textOf(part: MessagePart): string {
  return part.type === 'text' ? part.text : part.type
}

test('H25 assistant messages that follow each other are one turn; every other message is its own', () => {
  const more = message('u3', 'user', 'and more')
  const rules = message('s1', 'system', 'Be brief.')
  expect(shape([rules, asked, called, done, thanks, more])).toEqual([
    ['s1', 'system', 'Be brief.'],
    ['u1', 'user', 'tidy up'],
    ['a1', 'assistant', 'I look. Found. Done.'],
    ['u2', 'user', 'thanks'],
    ['u3', 'user', 'and more'],
  ])
  expect(shape([called])).toEqual([['a1', 'assistant', 'I look. Found.']])
  expect(shape([called, rules, done]).map(([id]) => id)).toEqual(['a1', 's1', 'a2'])
  expect(turnsOf([])).toEqual([])
})

test('a turn has the messages it is made of, and one of a single message its very parts', () => {
  const [question, answer] = turnsOf([asked, called, done])
  expect(answer?.messages).toEqual([called, done])
  expect([answer?.messages[0] === called, question?.parts === asked.parts]).toEqual([true, true])
})

test('the same list gives the same turns', () => {
  const messages = [asked, called]
  expect(turnsOf(messages)).toBe(turnsOf(messages))
})

test('a turn is the same object while its messages are, whatever happens around it', () => {
  const [question, answer] = turnsOf([asked, called, done])
  const [, again, reply] = turnsOf([asked, called, done, thanks])
  expect([again === answer, reply?.messages]).toEqual([true, [thanks]])
  expect(turnsOf([called, done])[0]).toBe(answer)
  // A message in the middle changes, as when its approval is answered while the next step is there already.
  const [same, other] = turnsOf([asked, { ...called }, done])
  expect([same === question, other === answer]).toEqual([true, false])
})

test('lists that share messages do not disturb each other', () => {
  const shorter = [asked, called]
  const longer = [asked, called, done]
  const turns = [...turnsOf(shorter), ...turnsOf(longer)]
  expect([...turnsOf([...shorter]), ...turnsOf([...longer])].map((turn, at) => turn === turns[at])).toEqual([
    true,
    true,
    true,
    true,
  ])
})
