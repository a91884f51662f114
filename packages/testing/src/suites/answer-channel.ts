import type { ResumeEntry } from '@countersign/core'
import type { AnswerChannel, Delivery } from '@countersign/server'
import { distinctTexts } from './distinct.js'
import type { SuiteRunner } from './runner.js'

export interface AnswerChannelUnderTest {
  readonly channel: AnswerChannel
  /** The same channel as opened by another process, if it is shared. */
  readonly another?: AnswerChannel | undefined
  close?(): Promise<void> | void
}

/** Creates a channel without open runs. */
export type CreateAnswerChannel = () => Promise<AnswerChannelUnderTest> | AnswerChannelUnderTest

const entry = (interruptId: string): ResumeEntry => ({
  interruptId,
  status: 'resolved',
  payload: { approved: true, reason: 'Zoë' },
  metadata: { countersign: { token: 'cs1.x' } },
})
const taken: Delivery = { status: 'taken' }
const conflict: Delivery = { status: 'refused', code: 'approval-conflict', message: 'Answered before.' }

/**
 * The tests that every {@link AnswerChannel} passes. Call it at the top of a test file with the runner's `test` and `expect`.
 *
 * @example
 * describeAnswerChannel('memoryAnswerChannel', () => ({ channel: memoryAnswerChannel() }), { test, expect })
 */
export function describeAnswerChannel(
  name: string,
  create: CreateAnswerChannel,
  { test, expect }: SuiteRunner,
): void {
  const spec = (sentence: string, run: (here: AnswerChannel, there: AnswerChannel) => Promise<void>) =>
    test(`${sentence} (${name})`, async () => {
      const { channel, another = channel, close } = await create()
      try {
        await run(channel, another)
      } finally {
        await close?.()
      }
    })

  spec(
    'answers reach the run that is open, as they were sent, and its word comes back',
    async (here, there) => {
      const got: (readonly ResumeEntry[])[] = []
      await here.open('run', async (entries) => {
        got.push(entries)
        return entries.length === 1 ? taken : conflict
      })
      expect(await there.deliver('run', [entry('a')])).toEqual(taken)
      expect(await there.deliver('run', [entry('b'), entry('c')])).toEqual(conflict)
      expect(got).toEqual([[entry('a')], [entry('b'), entry('c')]])
    },
  )

  spec('what the application knows of whoever answers comes along, as plain data', async (here, there) => {
    const got: unknown[] = []
    await here.open('run', async (_, context) => {
      got.push(context)
      return taken
    })
    const context = { subject: 'ann', factors: { second: true, at: 1 } }
    await there.deliver('run', [entry('a')], context)
    expect(got).toEqual([context])
  })

  spec('answers that wait, however many, do not hold up those of another user', async (here, there) => {
    // As the server forms it.
    const keyOf = (user: string) => `7:subject${user.length}:${user}1:t1:r`
    let decide: (delivery: Delivery) => void = () => {}
    const decided = new Promise<Delivery>((resolve) => {
      decide = resolve
    })
    const waiting: Promise<Delivery>[] = []
    for (const user of ['eve', 'mallory', 'trudy']) {
      await here.open(keyOf(user), () => decided)
      for (let count = 0; count < 32; count++) waiting.push(there.deliver(keyOf(user), [entry(`i${count}`)]))
    }
    await here.open(keyOf('ann'), async () => taken)
    expect(await there.deliver(keyOf('ann'), [entry('a')])).toEqual(taken)
    decide(taken)
    expect([...new Set((await Promise.all(waiting)).map(({ status }) => status))]).toEqual(['taken'])
  })

  spec('where no such run is open, answers are refused', async (here, there) => {
    expect(await statusOf(there, 'run')).toEqual('refused run-ended')
    const close = await here.open('run', async () => taken)
    expect(await statusOf(there, 'another')).toEqual('refused run-ended')
    await close()
    expect(await statusOf(there, 'run')).toEqual('refused run-ended')
  })

  spec(
    'a delivery waits until the run has said what becomes of it, and holds up no other',
    async (here, there) => {
      let decide: (delivery: Delivery) => void = () => {}
      const decided = new Promise<Delivery>((resolve) => {
        decide = resolve
      })
      await here.open('run', async ([first]) => (first?.interruptId === 'slow' ? decided : taken))
      const slow = there.deliver('run', [entry('slow')])
      expect(await there.deliver('run', [entry('quick')])).toEqual(taken)
      decide(conflict)
      expect(await slow).toEqual(conflict)
    },
  )

  spec(
    'a run that opens again takes the place of the older one, whose close changes nothing',
    async (here, there) => {
      const closeOlder = await here.open('run', async () => conflict)
      await here.open('run', async () => taken)
      await closeOlder()
      expect(await there.deliver('run', [entry('a')])).toEqual(taken)
    },
  )

  spec('runs keep to their own keys', async (here, there) => {
    const got: string[] = []
    for (const [at, key] of distinctTexts.entries()) {
      await here.open(key, async ([first]) => {
        got.push(`${at} ${first?.interruptId}`)
        return taken
      })
    }
    for (const [at, key] of distinctTexts.entries()) await there.deliver(key, [entry(String(at))])
    expect(got).toEqual(distinctTexts.map((_, at) => `${at} ${at}`))
  })
}

async function statusOf(channel: AnswerChannel, key: string): Promise<string> {
  const delivery = await channel.deliver(key, [entry('a')])
  return delivery.status === 'refused' ? `refused ${delivery.code}` : delivery.status
}
