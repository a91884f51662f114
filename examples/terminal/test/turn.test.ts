import { ChatClient } from '@countersign/client'
import { ask, gated, result, scriptedConnection, text } from '@countersign/testing'
import { expect, test } from 'vitest'
import { approve, type Decide, deny } from '../src/decide.js'
import { takeTurn } from '../src/turn.js'

/** A turn on a scripted agent in which every request is decided by `decide`. */
async function turn(runs: Parameters<typeof scriptedConnection>[0], decide: Decide) {
  const server = scriptedConnection(runs)
  const client = new ChatClient({ connection: server, onWarning: () => {} })
  const asked: string[] = []
  let written = ''
  const ended = await takeTurn(
    client,
    () => client.sendMessage('go'),
    (request) => {
      asked.push(`${request.view.id}, ${request.more} more`)
      return decide(request)
    },
    (line) => {
      written += line
    },
  )
  return { ended, asked, written, messages: client.getSnapshot().messages }
}

const yes: Decide = async ({ view }) => approve(view.id, 'once', undefined)

test('S3.107 several requests are asked one after the other, in order', async () => {
  const runs = [
    [...gated(1), ...gated(2), ...gated(3)],
    [result('c1'), result('c2'), result('c3'), text('Done.')],
  ]
  const { asked, ended } = await turn(runs, yes)
  expect(asked).toEqual(['a1, 2 more', 'a2, 1 more', 'a3, 0 more'])
  expect(ended).toEqual({ failed: false, deniedUnasked: 0 })
})

test('S3.107 a request that is told again, in its run or in the next, is asked once', async () => {
  const runs = [
    [...gated(1), ask('a1', 'c1'), ...gated(2)],
    [ask('a1', 'c1'), result('c1'), ask('a2', 'c2'), result('c2'), text('Done.')],
  ]
  const { asked } = await turn(runs, yes)
  expect(asked).toEqual(['a1, 1 more', 'a2, 0 more'])
})

test('S3.105 what a continuation asks is asked too', async () => {
  const runs = [gated(1), [result('c1'), ...gated(2)], [result('c2'), text('Done.')]]
  const { asked, messages } = await turn(runs, yes)
  expect(asked).toEqual(['a1, 0 more', 'a2, 0 more'])
  expect(messages.at(-1)?.parts.at(-1)).toEqual({ type: 'text', text: 'Done.' })
})

test('a denial that nobody was asked for is counted', async () => {
  const { ended, written } = await turn([gated(1), [text('Kept.')]], async ({ view }) => ({
    ...deny(view.id, 'nobody'),
    deniedUnasked: true,
  }))
  expect(ended.deniedUnasked).toBe(1)
  expect(written).toContain('Denied: nobody.')
})

test('a run that fails is told, and its message is safe to show', async () => {
  const server = { connect: () => failing() }
  const client = new ChatClient({ connection: server, onWarning: () => {} })
  let written = ''
  const ended = await takeTurn(
    client,
    () => client.sendMessage('go'),
    yes,
    (line) => {
      written += line
    },
  )
  expect(ended.failed).toBe(true)
  expect(written).toMatch(/^Error: /)
})

async function* failing(): AsyncGenerator<unknown> {
  yield { type: 'RUN_STARTED', threadId: 't', runId: 'r' }
  yield { type: 'RUN_ERROR', message: 'no \u001b[2J' }
}
