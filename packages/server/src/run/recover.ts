import { isCountersignError } from '@countersign/core'
import { randomId } from '../encoding/ids.js'
import type { Agent } from './agent.js'

/** Ends abandoned runs, one after the other. A thread that another process takes meanwhile is left to it. */
export async function recoverThreads(agent: Agent, limit: number): Promise<number> {
  const { threads } = agent
  let ended = 0
  for (const { owner, threadId } of (await threads?.abandoned(limit)) ?? []) {
    const context = owner === null ? {} : { subject: owner }
    const input = { threadId, runId: randomId('recovery_'), messages: [] }
    try {
      const thread = await agent.openThread(input, context)
      // Without the model: the run only closes what the dead one left open.
      for await (const _ of agent.run(input, { context, thread, maxSteps: 0 }));
      ended++
    } catch (error) {
      if (!isCountersignError(error) || error.code !== 'thread-busy') throw error
    }
  }
  return ended
}
