import { expect } from 'vitest'
import { type Cannot, column, type Row } from './matrix.js'
import { type OurAgent, openAgent, prompts } from './our-agent.js'

/** A tool call that waits for a yes, as the peer shows it. */
export interface PeerQuestion {
  readonly id: string
  readonly tool: string
  readonly input: unknown
}

export interface PeerAnswer {
  readonly approved: boolean
  readonly reason?: string
  readonly editedArgs?: unknown
}

/** A chat client of somebody else, talking to our server. */
export interface PeerClient {
  /** Says something; resolves when everything that it led to has ended. */
  say(text: string): Promise<void>
  pending(): readonly PeerQuestion[]
  /** Answers all that wait, in their order; resolves when everything that it led to has ended. */
  answer(...answers: readonly PeerAnswer[]): Promise<void>
  /** All that the assistant said. */
  said(): string
  /** The results of calls that the conversation holds, by the id of the call. */
  results(): Readonly<Record<string, string>>
  /** What the peer tells of failures. */
  errors(): readonly string[]
  /** Stops what is under way. */
  abort(): void
  /** Another of its kind, with what the peer would have kept of the conversation. */
  reload(): Promise<PeerClient>
}

export interface PeerOptions {
  readonly url: string
  /** The client tool `get_location`. */
  locate(): unknown
}

export type OpenPeer = (options: PeerOptions) => Promise<PeerClient>

interface Meeting {
  readonly agent: OurAgent
  readonly client: PeerClient
  readonly located: readonly string[]
}

/** A peer that meets our server. */
async function meet(open: OpenPeer, start = () => openAgent()): Promise<Meeting> {
  const agent = await start()
  const located: string[] = []
  const locate = () => {
    located.push('Oslo')
    return { place: 'Oslo' }
  }
  return { agent, located, client: await open({ url: agent.url, locate }) }
}

/** What the model was told last of what its calls came to. */
function toldResults({ asked }: OurAgent): unknown[] {
  const messages = asked.at(-1)?.messages ?? []
  return messages.flatMap((message) =>
    message.role === 'tool'
      ? message.content.flatMap((part) => (part.type === 'tool-result' ? [part.outcome] : []))
      : [],
  )
}

const mailed = (to: string) => ({ to, state: 'sent' })

const yes: PeerAnswer = { approved: true }
const no: PeerAnswer = { approved: false, reason: 'too risky' }

/** The column of a client on our server. */
export function theirClient(
  name: string,
  open: OpenPeer,
  otherwise: { readonly [R in Row]?: (() => Promise<void>) | Cannot } = {},
  start = () => openAgent(),
): void {
  column(name, cells(open, start), otherwise)
}

/** What every client does, row by row. */
export function cells(open: OpenPeer, start = () => openAgent()): Readonly<Record<Row, () => Promise<void>>> {
  return {
    async 'plain text'() {
      const { client } = await meet(open, start)
      await client.say(prompts.hello)
      expect(client.said()).toBe('Hello, Ada.')
      expect(client.errors()).toEqual([])
    },
    async 'tool call'() {
      const { client } = await meet(open, start)
      await client.say(prompts.weather)
      expect(client.results()).toEqual({ c1: expect.stringContaining('21') })
      expect(client.said()).toContain('It is: ')
      expect(client.pending()).toEqual([])
    },
    async approve() {
      const { client, agent } = await meet(open, start)
      await client.say(prompts.mail)
      expect(client.pending()).toMatchObject([{ tool: 'send_mail', input: { to: 'ada' } }])
      expect(agent.sent).toEqual([])
      await client.answer(yes)
      expect(agent.sent).toEqual(['ada'])
      expect(client.said()).toContain('Done: ')
      expect(client.said()).toContain('sent')
      expect(client.pending()).toEqual([])
      expect(agent.requests).toHaveLength(2)
    },
    async 'deny with reason'() {
      const { client, agent } = await meet(open, start)
      await client.say(prompts.mail)
      await client.answer(no)
      expect(agent.sent).toEqual([])
      expect(JSON.stringify(agent.asked.at(-1))).toContain('too risky')
      expect(client.said()).toContain('too risky')
      expect(client.pending()).toEqual([])
    },
    async edit() {
      const { client, agent } = await meet(open, start)
      await client.say(prompts.mail)
      await client.answer({ approved: true, editedArgs: { to: 'bob' } })
      expect(agent.sent).toEqual(['bob'])
      expect(client.said()).toContain('bob')
    },
    async 'two in parallel'() {
      const { client, agent } = await meet(open, start)
      await client.say(prompts.two)
      expect(client.pending().map(({ input }) => input)).toEqual([{ to: 'ada' }, { to: 'bob' }])
      await client.answer(yes, no)
      expect(agent.sent).toEqual(['ada'])
      expect(client.said()).toContain('too risky')
      expect(agent.requests).toHaveLength(2)
    },
    async chained() {
      const { client, agent } = await meet(open, start)
      await client.say(prompts.chain)
      await client.answer(yes)
      expect(client.pending()).toMatchObject([{ tool: 'send_mail', input: { to: 'bob' } }])
      expect(agent.sent).toEqual(['ada'])
      await client.answer(yes)
      expect(agent.sent).toEqual(['ada', 'bob'])
      expect(client.said()).toContain('Done: ')
      expect(agent.requests).toHaveLength(3)
      await client.say(prompts.hello)
      expect(toldResults(agent)).toMatchObject([{ value: mailed('ada') }, { value: mailed('bob') }])
    },
    async 'client tool'() {
      const { client, located } = await meet(open, start)
      await client.say(prompts.where)
      expect(located).toEqual(['Oslo'])
      expect(client.said()).toContain('You are: ')
      expect(client.said()).toContain('Oslo')
    },
    async error() {
      const { client } = await meet(open, start)
      await client.say(prompts.fail)
      expect(client.errors()).not.toEqual([])
      await client.say(prompts.hello)
      expect(client.said()).toContain('Hello, Ada.')
    },
    async abort() {
      const { client, agent } = await meet(open, start)
      const running = client.say(prompts.slow)
      await agent.speaking
      client.abort()
      await running
      await agent.stopped
      await client.say(prompts.hello)
      expect(client.said()).toContain('Hello, Ada.')
    },
    async reload() {
      const { client, agent } = await meet(open, start)
      await client.say(prompts.mail)
      const again = await client.reload()
      expect(again.pending()).toMatchObject([{ tool: 'send_mail', input: { to: 'ada' } }])
      await again.answer(yes)
      expect(agent.sent).toEqual(['ada'])
      expect(again.said()).toContain('Done: ')
    },
  }
}
