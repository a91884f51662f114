import { type Message, StreamProcessor, toAGUIMessages } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { type Agent, cancelAllPending, handleChat, withResults } from '@countersign/server'

/**
 * Where an application keeps its conversations: by the person and the thread, both in the key. A thread id comes from the request, so alone
 * it would open the conversation of whoever has that id.
 */
export interface ConversationStore {
  load(subject: string, threadId: string): Promise<readonly Message[]>
  save(subject: string, threadId: string, messages: readonly Message[]): Promise<void>
}

/**
 * A route that keeps the history itself and takes only the person's new words from a request. A call that was never answered, as
 * after a crash, an abort, or a question that the person passed over, is closed before they are added: what the model reads is
 * whole. Answers to approvals come by a route of their own, or with `resume`. `subjectOf` is the application's own authentication; whom it
 * does not know is turned away.
 */
export function storedHistoryRoute(
  agent: Agent,
  store: ConversationStore,
  subjectOf: (request: Request) => Promise<string | undefined>,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const subject = await subjectOf(request)
    if (subject === undefined) return new Response(null, { status: 401 })
    return handleChat(recordRuns(agent, store, subject), request, {
      context: { subject },
      prepare: async (input) => {
        const stored = await store.load(subject, input.threadId)
        const words = input.messages.at(-1)
        const messages = words?.role === 'user' ? [...closeOpenCalls(stored), words] : [...stored]
        await store.save(subject, input.threadId, messages)
        return { ...input, messages }
      },
    })
  }
}

function closeOpenCalls(history: readonly Message[]): readonly Message[] {
  return withResults(history, cancelAllPending(history, 'user moved on'))
}

/** The same agent, whose runs are added to the store when they end, however they end. */
function recordRuns(agent: Agent, store: ConversationStore, subject: string): Agent {
  return {
    ...agent,
    async *run(input, options) {
      const processor = new StreamProcessor({ messages: fromAGUIMessages(input.messages) })
      try {
        for await (const event of agent.run(input, options)) {
          await processor.process(event)
          yield event
        }
      } finally {
        await store.save(subject, input.threadId, toAGUIMessages(processor.getSnapshot().messages))
      }
    },
  }
}
