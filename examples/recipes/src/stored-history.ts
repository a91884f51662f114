import { createChatState, type Message, readMessages, step, toAGUIMessages } from '@countersign/core'
import { type Agent, cancelAllPending, handleChat, withResults } from '@countersign/server'

/** Where an application keeps its conversations. */
export interface ConversationStore {
  load(threadId: string): Promise<readonly Message[]>
  save(threadId: string, messages: readonly Message[]): Promise<void>
}

/**
 * A route that keeps the history itself and takes only the person's new words from a request. A call that was never answered, as
 * after a crash, an abort, or a question that the person passed over, is closed before they are added: what the model reads is
 * whole. Answers to approvals come by a route of their own, or with `resume`.
 */
export function storedHistoryRoute(
  agent: Agent,
  store: ConversationStore,
): (request: Request) => Promise<Response> {
  const recorded = recordRuns(agent, store)
  return (request) =>
    handleChat(recorded, request, {
      prepare: async (input) => {
        const stored = await store.load(input.threadId)
        const words = input.messages.at(-1)
        const messages = words?.role === 'user' ? [...closeOpenCalls(stored), words] : [...stored]
        await store.save(input.threadId, messages)
        return { ...input, messages }
      },
    })
}

function closeOpenCalls(history: readonly Message[]): readonly Message[] {
  return withResults(history, cancelAllPending(history, 'user moved on'))
}

/** The same agent, whose runs are added to the store when they end, however they end. */
function recordRuns(agent: Agent, store: ConversationStore): Agent {
  return {
    ...agent,
    async *run(input, options) {
      const state = createChatState()
      step(state, { type: 'MESSAGES_SNAPSHOT', messages: input.messages })
      try {
        for await (const event of agent.run(input, options)) {
          step(state, event)
          yield event
        }
      } finally {
        await store.save(input.threadId, toAGUIMessages(readMessages(state)))
      }
    },
  }
}
