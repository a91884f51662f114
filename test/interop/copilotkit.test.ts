import { CopilotKitCore, ɵInterruptState } from '@copilotkit/core'
import { HttpAgent } from 'ag-ui-client-0'
import { z } from 'zod'
import { type Kept, locateTool, questionsOf, readConversation } from './http-agent.js'
import { type PeerAnswer, type PeerClient, type PeerOptions, theirClient } from './their-client.js'

/**
 * CopilotKit's core with its own state of interrupts, used the way its framework packages use it: once all are answered, each tool
 * call gets a tool message with the answer's payload, and the run is taken up under the id that it had.
 */
async function copilotKit({ url, locate }: PeerOptions, kept: Kept = {}): Promise<PeerClient> {
  const { pendingInterrupts = [], ...config } = kept
  const agent = new HttpAgent({ url, agentId: 'default', ...(config as object) })
  const interrupts = new ɵInterruptState()
  const errors: string[] = []
  let interruptedRun: string | undefined
  let aborted = false
  let ids = agent.messages.length

  const core = new CopilotKitCore({
    agents__unsafe_dev_only: { default: agent },
    tools: [
      {
        name: locateTool.name,
        description: locateTool.description,
        parameters: z.object({}),
        handler: async () => locate(),
      },
    ],
  })
  core.subscribe({
    onError: ({ error }) => {
      if (!aborted) errors.push(error.message)
    },
  })
  agent.subscribe({
    onRunFinishedEvent({ event, input }) {
      if (event.outcome?.type !== 'interrupt') return interrupts.clear()
      interruptedRun = input.runId
      interrupts.setStandard(event.outcome.interrupts)
    },
  })
  restore()

  function restore(): void {
    agent.pendingInterrupts = pendingInterrupts as typeof agent.pendingInterrupts
    if (pendingInterrupts.length > 0) interrupts.setStandard(agent.pendingInterrupts)
  }

  function open() {
    return interrupts.pending?.kind === 'standard' ? interrupts.pending.interrupts : []
  }

  async function resume(): Promise<void> {
    let decision: ReturnType<typeof interrupts.resolve> = { kind: 'waiting' }
    for (const [id, payload] of given) decision = interrupts.resolve(payload, id)
    if (decision.kind !== 'resume') throw new Error(`CopilotKit did not resume: ${decision.kind}`)
    for (const { toolCallId, content } of decision.toolResults)
      agent.addMessage({ id: `kit-${++ids}`, role: 'tool', toolCallId, content })
    await core.runAgent({ agent, resume: decision.resume, ...(interruptedRun && { runId: interruptedRun }) })
  }
  let given: [string, PeerAnswer | undefined][] = []

  return {
    async say(content) {
      aborted = false
      agent.addMessage({ id: `kit-${++ids}`, role: 'user', content })
      await core.runAgent({ agent })
    },
    pending: () => questionsOf(open(), agent.messages),
    async answer(...answers) {
      given = open().map(({ id }, index) => [id, answers[index]])
      await resume()
    },
    said: () => readConversation(agent.messages).said(),
    results: () => readConversation(agent.messages).results(),
    errors: () => errors,
    abort() {
      aborted = true
      core.stopAgent({ agent })
    },
    async reload() {
      const { threadId, messages } = agent
      const stored = JSON.stringify({ threadId, initialMessages: messages, pendingInterrupts: open() })
      return copilotKit({ url, locate }, JSON.parse(stored) as Kept)
    },
  }
}

theirClient('CopilotKit core 1.75.0 on our server', (options) => copilotKit(options))
