import { handleChat, loadThread, type Model, memoryThreads } from '@countersign/server'
import { expect, test } from 'vitest'
import { input, testAgent, user } from './support.js'

const context = { subject: 'ann' }

/** A model that says one word, and the rest once it is let go. */
function setUp() {
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const model: Model = {
    id: 'test/m',
    async *stream() {
      yield { type: 'text-delta', delta: 'Once ' }
      await gate
      yield { type: 'text-delta', delta: 'upon a time.' }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const { agent } = testAgent([], { model, threads: memoryThreads() })
  const chat = (more: Parameters<typeof handleChat>[2]) => {
    const body = JSON.stringify(input([user('go')]))
    const headers = { 'content-type': 'application/json' }
    return handleChat(agent, new Request('http://localhost/chat', { method: 'POST', headers, body }), {
      context,
      ...more,
    })
  }
  return { agent, chat, letGo }
}

test('waitUntil gets a promise for the run that goes on without its reader, until it is stored', async () => {
  const { agent, chat, letGo } = setUp()
  const work: Promise<void>[] = []
  const response = await chat({ goOnFor: 60_000, waitUntil: (promise) => void work.push(promise) })
  const reader = response.body?.getReader()
  await reader?.read()
  await reader?.cancel()
  expect(work).toHaveLength(1)
  letGo()
  await work[0]
  const thread = await loadThread(agent, { subject: 'ann', threadId: 'thread' })
  expect(JSON.stringify(thread?.messages)).toContain('Once upon a time.')
  expect(thread?.run).toBeUndefined()
})

test('a reader that leaves before it has read anything leaves nothing to wait for', async () => {
  const { chat } = setUp()
  const work: Promise<void>[] = []
  const response = await chat({ waitUntil: (promise) => void work.push(promise) })
  await response.body?.cancel()
  await expect(work[0]).resolves.toBeUndefined()
})

test('a request that starts no run gives waitUntil nothing', async () => {
  const { agent } = setUp()
  const work: unknown[] = []
  const response = await handleChat(agent, new Request('http://localhost/chat'), {
    waitUntil: (promise) => void work.push(promise),
  })
  expect([response.status, work]).toEqual([405, []])
})
