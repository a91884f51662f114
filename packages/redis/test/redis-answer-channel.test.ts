import { redisAnswerChannel } from '@countersign/redis'
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
  return { channel, another, close }
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
