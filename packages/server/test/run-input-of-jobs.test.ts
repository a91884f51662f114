import { expect, test } from 'vitest'
import { input, say, testAgent, user } from './support.js'

test.each([
  ['no input', undefined],
  ['no thread', { threadId: undefined }],
  ['a number as its thread', { threadId: 7 }],
  ['an empty run', { runId: '' }],
  ['no messages', { messages: undefined }],
  ['a text as its messages', { messages: 'go' }],
  ['nothing among its messages', { messages: [undefined] }],
  ['a text as its answers', { resume: 'yes' }],
  ['nothing among its tools', { tools: [null] }],
])('generate() with %s is refused with what is wrong', async (_, wrong) => {
  const { agent } = testAgent([say('hello')])
  const given = wrong && { ...input([user('go')]), ...wrong }
  const refused = { code: 'invalid-argument', message: expect.stringContaining('In the input of a run') }
  await expect(agent.generate(given as never)).rejects.toMatchObject(refused)
})
