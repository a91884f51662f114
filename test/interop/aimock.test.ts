import { AGUIMock } from '@copilotkit/aimock'
import { fetchServerSentEvents } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { compat } from '@countersign/tanstack'
import { onTestFinished } from 'vitest'
import { prompts } from './our-agent.js'
import { ourClient, type PeerServer } from './our-client.js'
import { peerEvents } from './peer-script.js'

/** AGUIMock serves what its fixtures say; this one is asked before each response what that is. */
async function openMock(): Promise<PeerServer> {
  const mock = new AGUIMock()
  const sent: string[] = []
  let requests = 0
  let events: AGUIEvent[] = []
  const matches = (slow: boolean) => (given: unknown) => {
    const input = given as RunAgentInput
    if (isSlow(input) !== slow) return false
    requests++
    events = peerEvents(input, sent)
    return true
  }
  const fixture = (slow: boolean) => ({
    match: { predicate: matches(slow) },
    get events() {
      return events as never
    },
    ...(slow && { delayMs: 5 }),
  })
  // what it says by itself has ids of its own, which is what `compat` is for
  mock.onMessage(/^hello$/, 'Hello, Ada.')
  mock.addFixture(fixture(false)).addFixture(fixture(true))
  const url = await mock.start()
  onTestFinished(() => mock.stop())
  const options = { connection: fetchServerSentEvents(`${url}/`), compat: compat(), onWarning: () => {} }
  return { options, sent, requests: () => requests }
}

function isSlow({ messages }: RunAgentInput): boolean {
  const last = messages.findLast(({ role }) => role === 'user')
  return last?.role === 'user' && last.content === prompts.slow
}

ourClient('our client on aimock 1.43.0 (AGUIMock)', openMock)
