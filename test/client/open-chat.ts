import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ChatActions,
  ChatClient,
  type ChatClientOptions,
  type Connection,
  fetchServerSentEvents,
  type Inspection,
  type ToolCallPart,
  type UIMessage,
} from '@countersign/client'
import {
  createTimeline,
  passMacrotasks,
  type RunScript,
  type Script,
  type ScriptOptions,
  scriptedConnection,
  type Timeline,
  watch,
} from '@countersign/testing'
import { scriptedServer } from '@countersign/testing/server'
import { afterEach, beforeEach, expect, onTestFailed, onTestFinished } from 'vitest'

/** How a scenario travels. Each runs over both. */
export const wires = ['in-process', 'sse'] as const
export type Wire = (typeof wires)[number]

export interface OpenedChat {
  readonly client: ChatClient
  /** What the person does, noted in the timeline. */
  readonly person: ChatActions
  readonly server: Script
  readonly connection: Connection
  readonly timeline: Timeline
  /** Waits until nothing moves any more. */
  settle(): Promise<void>
}

type Options = Omit<ChatClientOptions, 'connection'> & ScriptOptions & { readonly client?: typeof ChatClient }

/** A client and its scripted server, closed at the end of the test; a test that fails prints what happened. */
export async function openChat(
  wire: Wire,
  runs: readonly RunScript[],
  options: Options = {},
): Promise<OpenedChat> {
  const {
    timeline = createTimeline(),
    otherwise,
    deaf = false,
    client: Client = ChatClient,
    ...rest
  } = options
  const scripted = { timeline, deaf, ...(otherwise !== undefined && { otherwise }) }
  const { server, connection, close } = await openWire(wire, runs, scripted)
  const client = new Client({ connection, ...rest })
  watch(client, timeline)
  onTestFailed(() => console.log(timeline.print()))
  onTestFinished(async () => {
    client.dispose()
    await close()
  })
  const settle = async () => {
    await passMacrotasks(4)
    if (wire === 'sse') await sleep(20)
  }
  return { client, person: client.actions, server, connection, timeline, settle }
}

async function openWire(wire: Wire, runs: readonly RunScript[], options: ScriptOptions) {
  if (wire === 'in-process') {
    const server = scriptedConnection(runs, options)
    return { server, connection: server, close: async () => {} }
  }
  const server = await scriptedServer(runs, options)
  return { server, connection: fetchServerSentEvents(server.url), close: () => server.close() }
}

/** A client that tells its subscribers at once, until the end of the test. */
export function openClient(options: ChatClientOptions): ChatClient {
  const client = new ChatClient({ notify: 'sync', ...options })
  onTestFinished(() => client.dispose())
  return client
}

/** Fails every test of a file that leaves a rejection nobody handles. */
export function failOnUnhandledRejections(): void {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  beforeEach(() => {
    unhandled.length = 0
    process.on('unhandledRejection', note)
  })
  afterEach(async () => {
    await passMacrotasks(2)
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })
}

export function parts(client: ChatClient): readonly UIMessage['parts'][number][] {
  return client.getSnapshot().messages.flatMap((message) => message.parts)
}

/** The call with that id, as shown. */
export function callOf(client: ChatClient, id: string): ToolCallPart {
  const found = parts(client).find((part) => part.type === 'tool-call' && part.id === id)
  if (found?.type !== 'tool-call') throw new Error(`There is no call ${id}.`)
  return found
}

/** Its state, or `undefined` where there is no such call yet. */
export function stateOf(client: ChatClient, id: string): ToolCallPart['state'] | undefined {
  const found = parts(client).find((part) => part.type === 'tool-call' && part.id === id)
  return found?.type === 'tool-call' ? found.state : undefined
}

/** The id of the first open request. */
export const pendingId = (client: ChatClient) =>
  client.getSnapshot().pendingApprovals[0]?.approval.id ?? expect.fail('nothing is asked')

/** All texts of assistant messages, joined. */
export function saidBy(client: ChatClient, role: UIMessage['role'] = 'assistant'): string {
  const messages = client.getSnapshot().messages.filter((message) => message.role === role)
  const texts = messages.flatMap((message) =>
    message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])),
  )
  return texts.join(' ')
}

export const saying = (id: string, words: string, role: UIMessage['role'] = 'user'): UIMessage => ({
  id,
  role,
  parts: [{ type: 'text', text: words }],
})

/** What is shown, with a line for each message. */
export function linesOf(client: ChatClient): string[] {
  const words = ({ parts }: UIMessage) => parts.map((part) => ('text' in part ? part.text : part.type))
  return client.getSnapshot().messages.map((message) => `${message.role}: ${words(message).join('|')}`)
}

export function flags(client: ChatClient): Pick<Inspection, 'continuationPending' | 'continuationSkipped'> {
  const { continuationPending, continuationSkipped } = client.inspect()
  return { continuationPending, continuationSkipped }
}

export const idle = { continuationPending: false, continuationSkipped: false }

/** The ids and decisions in `resume` of each request. */
export function answersOf(server: Script): string[][] {
  return server.requests.map(({ resume = [] }) =>
    resume.map(({ interruptId, status, payload }) => {
      if (status === 'cancelled') return `${interruptId} cancelled`
      return `${interruptId} ${payload.approved ? 'yes' : 'no'}${payload.reason === undefined ? '' : ` (${payload.reason})`}`
    }),
  )
}
