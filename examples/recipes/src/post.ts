import {
  createChatState,
  type Message,
  type RunAgentInput,
  readMessages,
  readServerSentEvents,
  step,
  toAGUIMessages,
} from '@countersign/core'
import { createEventReader, fullSteps } from '@countersign/core/ag-ui'

/** A client in one function: posts the input and answers the conversation as it is when the run has ended. */
export async function post(
  route: (request: Request) => Promise<Response>,
  input: RunAgentInput,
): Promise<readonly Message[]> {
  const response = await route(
    new Request('http://localhost/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    }),
  )
  if (!response.ok || response.body === null) throw new Error(`${response.status}: ${await response.text()}`)
  const state = createChatState({ moreSteps: fullSteps })
  step(state, { type: 'MESSAGES_SNAPSHOT', messages: input.messages })
  const reader = createEventReader({ threadId: input.threadId, runId: input.runId })
  for await (const batch of readServerSentEvents(response.body)) {
    for (const { data } of batch) reader.push(data, (event) => step(state, event))
  }
  return toAGUIMessages(readMessages(state))
}
