import {
  type Message,
  type RunAgentInput,
  readServerSentEvents,
  StreamProcessor,
  toAGUIMessages,
} from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'

/** A client in one function: posts the input and returns the conversation as it is when the run has ended. */
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
  const messages = fromAGUIMessages(input.messages)
  const processor = new StreamProcessor({ threadId: input.threadId, messages })
  await processor.processStream(readServerSentEvents(response.body))
  return toAGUIMessages(processor.getSnapshot().messages)
}
