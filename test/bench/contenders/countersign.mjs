import { ChatClient, fetchServerSentEvents, stream } from '@countersign/client'
import { respond } from './agui-server.mjs'

/** The whole client, over its connections; whoever listens reads the snapshot. */
function createCountersign(notify) {
  function open(scenario, connect) {
    let turn = 0
    let ids = 0
    const sent = []
    const client = new ChatClient({
      threadId: 'thread',
      generateId: () => `id-${ids++}`,
      notify,
      initialMessages: scenario.history.map(({ id: of, role, text }) => ({
        id: of,
        role,
        parts: [{ type: 'text', text }],
      })),
      connection: connect((input) => {
        for (const entry of input.resume ?? []) sent.push(entry.interruptId)
        return scenario.agui[turn++]
      }),
    })
    // As every binding does: only then the expiry of requests is watched.
    client.attach()
    let published = 0
    let size = 0
    let notified = 0
    client.subscribe(() => {
      notified++
      const part = client.getSnapshot().messages.at(-1)?.parts.at(-1)
      const now =
        scenario.kind === 'args'
          ? part?.input === undefined
            ? 0
            : part.arguments.length
          : part?.text?.length
      if (now > size) {
        size = now
        published++
      }
    })
    const last = () => client.getSnapshot().messages.at(-1)
    return { client, sent, last, counts: () => ({ published, notified }) }
  }

  const overStream = (clock) => (next) =>
    stream(async function* (input) {
      const run = next(input)
      const { threadId, runId } = input
      clock.start()
      yield { type: 'RUN_STARTED', threadId, runId }
      yield* run.batches
      const { interrupts } = run
      yield {
        type: 'RUN_FINISHED',
        threadId,
        runId,
        ...(interrupts && { outcome: { type: 'interrupt', interrupts } }),
      }
    })

  const overFetch = (clock) => (next) =>
    fetchServerSentEvents('http://bench.invalid/chat', {
      fetch: async (_url, init) => {
        const input = JSON.parse(init.body)
        clock.start()
        return respond(input, next(input).reads)
      },
    })

  /** The client comes before its clock: what is timed starts with the first event. */
  function session(scenario, over, { act = async () => {}, result }) {
    const clock = { start: () => clock.real?.start(), real: undefined }
    const chat = open(scenario, over(clock))
    return {
      client: chat.client,
      async run(real) {
        clock.real = real
        for (let turn = 0; turn < (scenario.turns ?? 1); turn++) {
          const outcome = await chat.client.sendMessage('go')
          if (outcome.status !== 'sent') throw new Error(`not sent: ${outcome.error}`)
        }
        await act(chat)
      },
      result: () => ({ ...result(chat), ...chat.counts() }),
      close: () => chat.client.dispose(),
    }
  }

  const readText = ({ client, last }) => ({
    text: last().parts[0].text,
    history: client
      .getSnapshot()
      .messages.slice(0, -2)
      .map(({ parts }) => parts[0].text),
  })

  return {
    publishesAll: notify === 'sync',
    text: (scenario) => session(scenario, overStream, { result: readText }),
    sse: (scenario) => session(scenario, overFetch, { result: readText }),
    args: (scenario) =>
      session(scenario, overStream, { result: ({ last }) => ({ input: last().parts[0].input }) }),
    calls: (scenario) =>
      session(scenario, overStream, {
        async act({ client }) {
          await Promise.all(
            scenario.calls.map(({ approvalId }) =>
              client.addToolApprovalResponse({ id: approvalId, approved: true }),
            ),
          )
        },
        result({ client, sent, last }) {
          const parts = client.getSnapshot().messages.flatMap((message) => message.parts)
          const calls = parts.filter((part) => part.type === 'tool-call')
          return {
            calls: calls.map((part) => ({
              id: part.id,
              approved: part.approval?.approved,
              output: part.output,
            })),
            text: last().parts[0].text,
            sent,
          }
        },
      }),
  }
}

/** Every delta published on its own, which is what the peers do and what the immutable floor does. */
export const countersignSync = createCountersign('sync')
/** As it is where nothing is configured: deltas that arrive together are published together. */
export const countersign = createCountersign(undefined)
