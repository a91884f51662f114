import { ChatClient, type ToolCallPart } from '@countersign/client'
import { expect, onTestFinished, test } from 'vitest'
import { full } from '../full.js'
import { brokenAfter, openRoute } from './ai-sdk-route.js'
import { prompts } from './our-agent.js'

// A response of an AI SDK route that breaks off anywhere, and then retry().

const calls = (client: ChatClient): ToolCallPart[] =>
  client.getSnapshot().messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'))

const ended = ['complete', 'error', 'cancelled', 'denied']

test.each([
  [prompts.mail, true],
  [prompts.two, true],
  [prompts.chain, true],
  [prompts.weather, true],
] as const)(
  'after a cut anywhere in %j, retry() leads to the end (persists: %s)',
  async (prompt, persists) => {
    const faults: string[] = []
    for (const broken of [1, 2]) {
      for (let chunks = 1; chunks < 20; chunks += full ? 1 : 3) {
        const route = await openRoute({
          persists,
          around: (response, request) => (request === broken ? brokenAfter(response, chunks) : response),
        })
        const client = new ChatClient(route.options)
        onTestFinished(client.dispose)
        const log: string[] = []
        let failed = false
        const note = (what: string) => {
          const { status, error } = client.getSnapshot()
          log.push(
            `${what}: ${status} ${error?.code ?? ''} ${calls(client).map(({ id, state }) => `${id} ${state}`)}`,
          )
        }
        const answer = async () => {
          for (let round = 0; round < 4; round++) {
            const open = client.getSnapshot().pendingApprovals.map(({ approval }) => approval?.id ?? '')
            if (open.length === 0) return
            await Promise.all(open.map((id) => client.addToolApprovalResponse({ id, approved: true })))
            note(`yes to ${open}`)
          }
        }
        await client.sendMessage(prompt)
        note('sent')
        if (broken === 2) await answer()
        for (let round = 0; round < 2; round++) {
          await client.retry()
          note('retried')
          failed ||= client.getSnapshot().status === 'error'
          await answer()
        }
        const { status } = client.getSnapshot()
        const left = calls(client).filter(({ state }) => !ended.includes(state))
        const twice = route.sent.filter((to, at) => route.sent.indexOf(to) !== at)
        if (failed || status !== 'ready' || left.length > 0 || (broken === 1 && twice.length > 0))
          faults.push(`cut ${broken}/${chunks}, ran ${route.sent}\n  ${log.join('\n  ')}`)
      }
    }
    expect(faults.join('\n')).toBe('')
  },
)
