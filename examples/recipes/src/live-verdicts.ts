import { type AssistantMessage, type Message, toAGUIMessages } from '@countersign/core'
import { type AgentTool, type AnswerQueue, createAgent, type Model } from '@countersign/server'
import {
  appendTurn,
  isToolOutput,
  type PlanEvent,
  type PlannedCall,
  planFromQueue,
  plannedCalls,
  runPlan,
  type ToolOutputEvent,
} from '@countersign/server/plan'
import { inputOf } from './script.js'

interface LiveOptions {
  readonly model: Model
  readonly tools: readonly Extract<AgentTool, { location: 'server' }>[]
  readonly needsApproval: (call: PlannedCall) => boolean
  /** For this conversation only. The application puts the user's answers into it. */
  readonly answers: AnswerQueue
  readonly show: (event: PlanEvent | TurnEvent) => void
  readonly signal?: AbortSignal
}

/** The model has finished a turn. */
export interface TurnEvent {
  readonly type: 'turn'
  readonly turn: number
  readonly text: string
  readonly stopReason: string | undefined
}

/**
 * The application's own loop, for a connection that stays open: it asks the model, runs the safe calls at once, and lets
 * each other call wait for its own answer. The model continues when every call has its result. With `runTools: false` all
 * of this is up to the application, including what is not checked here: that answers come from the right user.
 */
export async function liveConversation(question: string, options: LiveOptions): Promise<readonly Message[]> {
  const { model, tools, needsApproval, answers, show, signal } = options
  const agent = createAgent({ model, tools, runTools: false })
  const plan = planFromQueue(needsApproval, answers, { signal })
  const threadId = crypto.randomUUID()
  let history: readonly Message[] = [{ id: crypto.randomUUID(), role: 'user', content: question }]
  for (let turn = 1; ; turn++) {
    const said = await agent.generate(inputOf(threadId, [...history]), { signal })
    show({ type: 'turn', turn, text: said.text, stopReason: said.finishReason })
    const spoken = lastTurn(toAGUIMessages(said.messages))
    const calls = plannedCalls(spoken)
    if (spoken === undefined || calls.length === 0)
      return spoken === undefined ? history : [...history, spoken]
    const outputs: ToolOutputEvent[] = []
    for await (const event of runPlan(plan(calls), { tools, signal, messages: history })) {
      show(event)
      if (isToolOutput(event)) outputs.push(event)
    }
    history = appendTurn(history, spoken, outputs)
  }
}

function lastTurn(messages: readonly Message[]): AssistantMessage | undefined {
  const last = messages.at(-1)
  return last?.role === 'assistant' ? last : undefined
}
