import { randomUUID } from 'node:crypto'
import { createClient } from 'redis'
import { afterAll, test } from 'vitest'
import { redisForTests } from '../../../scripts/redis.mjs'

/** The server of these tests, and whether there is one: where there is none, the tests are skipped by name. */
export async function useRedis(untested: string) {
  const server = await redisForTests(untested)
  const closers: (() => void)[] = []
  afterAll(async () => {
    for (const close of closers) close()
    await server?.stop()
  })
  return {
    url: server?.url ?? '',
    test: test.skipIf(server === undefined),
    /** A connected client, closed after the tests. */
    connect: async () => {
      const client = createClient({ url: server?.url ?? '' }).on('error', () => {})
      await client.connect()
      closers.push(() => client.destroy())
      return client
    },
    /** Keys of its own, also where others use the same server. */
    newPrefix: () => `countersign-test:${randomUUID()}:`,
  }
}
