import type { PeerAnswer, PeerClient, PeerOptions, PeerQuestion } from './their-client.js'

/** What the versions of `HttpAgent` have in common. */
export interface AnyHttpAgent {
  threadId: string
  readonly messages: readonly AnyMessage[]
  pendingInterrupts: readonly AnyInterrupt[]
  addMessage(message: never): void
  abortRun(): void
  runAgent(parameters: never, subscriber: never): Promise<unknown>
}

interface AnyInterrupt {
  readonly id: string
  readonly toolCallId?: string | undefined
}

interface AnyMessage {
  readonly id: string
  readonly role: string
  readonly content?: unknown
  readonly toolCallId?: string
  readonly toolCalls?: readonly AnyCall[] | undefined
}

interface AnyCall {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: string }
}

/** What an application keeps of an `HttpAgent`. */
export interface Kept {
  readonly threadId?: string
  readonly initialMessages?: readonly AnyMessage[]
  readonly pendingInterrupts?: readonly AnyInterrupt[]
}

/** The conversation as AG-UI messages, which several peers keep. */
export function readConversation(messages: readonly AnyMessage[]) {
  const text = (role: string) =>
    messages.flatMap((message) => (message.role === role ? [String(message.content ?? '')] : []))
  return {
    said: () => text('assistant').join(' '),
    results: () =>
      Object.fromEntries(
        messages.flatMap(({ role, toolCallId, content }) =>
          role === 'tool' ? [[String(toolCallId), String(content)]] : [],
        ),
      ),
    /** Calls without a result. */
    open: (): readonly AnyCall[] => {
      const answered = new Set(messages.map(({ toolCallId }) => toolCallId))
      return messages.flatMap(({ toolCalls = [] }) => toolCalls.filter(({ id }) => !answered.has(id)))
    },
  }
}

export function questionsOf(
  interrupts: readonly AnyInterrupt[],
  messages: readonly AnyMessage[],
): readonly PeerQuestion[] {
  const calls = messages.flatMap(({ toolCalls = [] }) => toolCalls)
  return interrupts.flatMap(({ id, toolCallId }) => {
    const call = calls.find((one) => one.id === toolCallId)
    return call ? [{ id, tool: call.function.name, input: JSON.parse(call.function.arguments) }] : []
  })
}

/** The tool of every row that the client runs itself, as it is told to our server. */
export const locateTool = {
  name: 'get_location',
  description: 'Where the person is.',
  parameters: { type: 'object', properties: {} },
}

/** An application around a bare `HttpAgent`: it shows interrupts, answers all of them at once, and runs the client tool. */
export function httpAgentClient(
  create: (url: string, kept: Kept) => AnyHttpAgent,
  { url, locate }: PeerOptions,
  kept: Kept = {},
): PeerClient {
  const agent = create(url, kept)
  const errors: string[] = []
  let ids = agent.messages.length
  const onRunErrorEvent = ({ event }: { event: { message: string; code?: string } }) => {
    if (event.code !== 'abort') errors.push(event.message)
  }

  async function run(parameters: object): Promise<void> {
    const given = { tools: [locateTool], ...parameters }
    await agent.runAgent(given as never, { onRunErrorEvent } as never)
    const open = readConversation(agent.messages).open()
    const waiting = open.filter((call) => call.function.name === locateTool.name)
    for (const { id } of waiting) add({ role: 'tool', toolCallId: id, content: JSON.stringify(locate()) })
    if (waiting.length > 0) await run({})
  }

  function add(message: object): void {
    agent.addMessage({ id: `client-${++ids}`, ...message } as never)
  }

  return {
    async say(content) {
      add({ role: 'user', content })
      await run({})
    },
    pending: () => questionsOf(agent.pendingInterrupts, agent.messages),
    answer: (...answers) =>
      run({ resume: agent.pendingInterrupts.map(({ id }, index) => entry(id, answers[index])) }),
    said: () => readConversation(agent.messages).said(),
    results: () => readConversation(agent.messages).results(),
    errors: () => errors,
    abort: () => agent.abortRun(),
    async reload() {
      const { threadId, messages, pendingInterrupts } = agent
      const stored = JSON.stringify({ threadId, initialMessages: messages, pendingInterrupts })
      return httpAgentClient(create, { url, locate }, JSON.parse(stored) as Kept)
    },
  }
}

function entry(interruptId: string, payload: PeerAnswer | undefined) {
  return { interruptId, status: 'resolved', payload }
}
