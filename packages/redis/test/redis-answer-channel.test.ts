import { redisAnswerChannel } from '@countersign/redis'
import type { Delivery } from '@countersign/server'
import { describeAnswerChannel } from '@countersign/testing/suites'
import { expect } from 'vitest'
import { useRedis } from './server.js'

const { test, connect, newPrefix } = await useRedis('the answer channel in Redis')

async function channels() {
  const prefix = newPrefix()
  const channel = redisAnswerChannel(await connect(), { prefix })
  const another = redisAnswerChannel(await connect(), { prefix })
  const close = () => {
    channel.close()
    another.close()
  }
  return { channel, another, close, prefix }
}

describeAnswerChannel('redisAnswerChannel', channels, { test, expect })

const answer = { interruptId: 'a', status: 'resolved', payload: { approved: true } } as const

test('a run whose server is gone is refused at once, though nobody closed it', async () => {
  const { channel, another, close } = await channels()
  await channel.open('run', async () => ({ status: 'taken' }))
  channel.close()
  expect(await another.deliver('run', [answer])).toMatchObject({ status: 'refused', code: 'run-ended' })
  close()
})

test('a server that dies while an answer waits in its run lets go of who sent it', async () => {
  const { channel, another, close } = await channels()
  let arrived: () => void = () => {}
  const arrival = new Promise<void>((resolve) => {
    arrived = resolve
  })
  await channel.open('run', () => {
    arrived()
    return new Promise(() => {})
  })
  const delivery = another.deliver('run', [answer])
  await arrival
  channel.close()
  expect(await delivery).toMatchObject({ status: 'refused', code: 'run-ended' })
  close()
})

test('beyond 32 answers that wait, the next of the same user is refused at once', async () => {
  const { channel, another, close } = await channels()
  const keyOf = (run: string) => `7:subject3:eve1:t${run.length}:${run}`
  let decide: (delivery: Delivery) => void = () => {}
  const decided = new Promise<Delivery>((resolve) => {
    decide = resolve
  })
  const waiting: Promise<Delivery>[] = []
  for (const run of ['one', 'two']) {
    await channel.open(keyOf(run), () => decided)
    for (let count = 0; count < 16; count++) waiting.push(another.deliver(keyOf(run), [answer]))
  }
  expect(await another.deliver(keyOf('two'), [answer])).toMatchObject({ code: 'too-many-answers' })
  decide({ status: 'taken' })
  await Promise.all(waiting)
  expect(await another.deliver(keyOf('one'), [answer])).toEqual({ status: 'taken' })
  close()
})

test('what was delivered leaves nothing in Redis, however many answers were refused', async () => {
  const { channel, another, close, prefix } = await channels()
  const closeRun = await channel.open(
    'run',
    async () =>
      ({
        ...{ status: 'refused', code: 'not-asked', message: 'There is no such request.' },
      }) as const,
  )
  for (let count = 0; count < 40; count++)
    await another.deliver('run', [{ ...answer, interruptId: `i${count}` }])
  await closeRun()
  expect(await (await connect()).keys(`${prefix}*`)).toEqual([])
  close()
})
