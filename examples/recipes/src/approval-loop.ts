import type { Agent } from '@countersign/server'
import {
  createPartReader,
  fromResponseParts,
  isApprovalRequest,
  type PromptMessage,
  type PromptToolCall,
  promptToAGUI,
  type ResponsePart,
  type StreamPart,
  toolApprovalResponse,
  toolMessage,
  toResponseParts,
} from '@countersign/server/prompt'
import { inputOf } from './script.js'

interface Answer {
  readonly approved: boolean
  readonly reason?: string
}

/** Shows a waiting call to the user and returns their answer. */
export type Decide = (call: PromptToolCall) => Answer | Promise<Answer>

/**
 * The loop: read the parts of a run's reply. If there are approval requests among them, get the answers and add
 * them to the history. Repeat until nothing is left to approve. The history is the only state between two rounds.
 */
export async function converse(
  agent: Agent,
  question: string,
  decide: Decide,
): Promise<readonly PromptMessage[]> {
  const threadId = crypto.randomUUID()
  let history: readonly PromptMessage[] = [
    { id: crypto.randomUUID(), role: 'user', content: [{ type: 'text', text: question }] },
  ]
  for (;;) {
    const parts = await respond(agent, threadId, history)
    history = [...history, ...fromResponseParts(parts, () => crypto.randomUUID())]
    const requests = parts.filter(isApprovalRequest)
    if (requests.length === 0) return history
    const called = new Map(parts.flatMap((part) => (part.type === 'tool-call' ? [[part.id, part]] : [])))
    const answers = requests.map(async ({ approvalId, toolCallId }) => {
      const call = called.get(toolCallId)
      const answer = call === undefined ? { approved: false } : await decide(call)
      return toolApprovalResponse({ approvalId, ...answer })
    })
    history = [...history, toolMessage(await Promise.all(answers))]
  }
}

async function respond(
  agent: Agent,
  threadId: string,
  history: readonly PromptMessage[],
): Promise<readonly ResponsePart[]> {
  const read = createPartReader()
  const parts: StreamPart[] = []
  for await (const event of agent.run(inputOf(threadId, promptToAGUI(history)))) {
    if (event.type === 'RUN_ERROR') throw new Error(event.message)
    parts.push(...read(event))
  }
  return toResponseParts(parts)
}
