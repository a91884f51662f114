import { type Message, StreamProcessor, toAGUIMessages } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { type Agent, cancelAllPending, handleChat, withResults } from '@countersign/server'

/**
 * Where the application keeps its conversations, keyed by user and thread. A thread id comes from the
 * request, so on its own it would open anybody's conversation.
 */
export interface ConversationStore {
  load(subject: string, threadId: string): Promise<readonly Message[]>
  save(subject: string, threadId: string, messages: readonly Message[]): Promise<void>
}

/**
 * A route that keeps the history itself and takes only the user's new message from a request. A call that was never
 * answered, for instance after a crash, an abort, or a request that the user ignored, is closed before the message
 * is added, so that the model reads a complete history. Answers to approvals come through a separate route, or with
 * `resume`. `subjectOf` is the application's own authentication; requests of unknown users get 401.
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

/** The same agent, but the conversation is stored when a run ends, however it ends. */
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
