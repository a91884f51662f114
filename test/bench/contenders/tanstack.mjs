import { ChatClient, fetchServerSentEvents } from '@tanstack/ai-client'
import { respond } from './agui-server.mjs'

/**
 * `ChatClient` awaits a timer after each chunk unless `document.hidden`. What is compared is computing, so it sees a hidden document
 * while it runs; what it is as shipped is measured once, apart.
 */
async function hidden(work) {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'document')
  Object.defineProperty(globalThis, 'document', {
    value: { hidden: true },
    configurable: true,
    writable: true,
  })
  try {
    return await work()
  } finally {
    if (before) Object.defineProperty(globalThis, 'document', before)
    else delete globalThis.document
  }
}

function session(scenario, over, result, act = async () => {}) {
  let turn = 0
  let clock
  let published = 0
  let size = 0
  let failure
  const sent = []
  const next = (input) => {
    clock.start()
    for (const entry of input.resume ?? []) sent.push(entry.interruptId)
    return scenario.agui[turn++]
  }
  const client = new ChatClient({
    threadId: 'thread',
    connection: over(next),
    initialMessages: scenario.history.map(({ id, role, text }) => ({
      id,
      role,
      parts: [{ type: 'text', content: text }],
    })),
    onError: (error) => {
      failure = error
    },
    onMessagesChange(messages) {
      const now = messages.at(-1)?.parts.at(-1)?.content?.length
      if (now > size) {
        size = now
        published++
      }
    },
  })
  return {
    client,
    run: (real) =>
      hidden(async () => {
        clock = real
        for (let i = 0; i < (scenario.turns ?? 1); i++) await client.sendMessage('go')
        await act(client, () => turn)
        if (failure) throw failure
      }),
    result: () => ({ ...result(client, sent), published }),
    close: () => client.dispose?.(),
  }
}

/** It writes into the events that it is given: each session gets its own. */
const overAdapter = (scenario) => {
  const runs = scenario.agui.map(({ batches, interrupts }) => ({
    events: batches.flatMap((batch) => batch.map((event) => ({ ...event }))),
    interrupts: interrupts?.map(asTanstack),
  }))
  return (next) => ({
    async *connect(_messages, _data, _signal, { threadId, runId, resume }) {
      const at = scenario.agui.indexOf(next({ resume }))
      const { events, interrupts } = runs[at]
      runs[at] = undefined
      yield { type: 'RUN_STARTED', threadId, runId }
      yield* events
      const outcome = interrupts && { outcome: { type: 'interrupt', interrupts } }
      yield { type: 'RUN_FINISHED', threadId, runId, finishReason: 'stop', ...outcome }
    },
  })
}

/** The form of interrupt that this client answers. */
function asTanstack({ metadata, ...interrupt }) {
  return {
    ...interrupt,
    reason: 'approval_required',
    metadata: { kind: 'approval', ...metadata.countersign },
  }
}

const overFetch = (next) =>
  fetchServerSentEvents('http://bench.invalid/chat', {
    fetchClient: async (_url, init) => {
      const { threadId = 'thread', runId = 'run', resume } = JSON.parse(init.body)
      return respond({ threadId, runId }, next({ resume }).reads)
    },
  })

const readText = (client) => {
  const messages = client.getMessages()
  return {
    text: messages.at(-1).parts.find((part) => part.type === 'text').content,
    history: messages.slice(0, -2).map(({ parts }) => parts[0].content),
  }
}

export const tanstack = {
  text: (scenario) => session(scenario, overAdapter(scenario), readText),
  sse: (scenario) => session(scenario, overFetch, readText),
  args: (scenario) =>
    session(scenario, overAdapter(scenario), (client) => {
      const part = client
        .getMessages()
        .at(-1)
        .parts.find((one) => one.type === 'tool-call')
      return { input: part.input ?? JSON.parse(part.arguments) }
    }),
  calls: (scenario) =>
    session(
      scenario,
      overAdapter(scenario),
      (client, sent) => {
        const parts = client.getMessages().flatMap((message) => message.parts)
        const results = new Map(
          parts.filter((part) => part.type === 'tool-result').map((part) => [part.toolCallId, part.content]),
        )
        return {
          calls: parts
            .filter((part) => part.type === 'tool-call')
            .map((part) => ({
              id: part.id,
              approved: part.approval?.approved,
              output: JSON.parse(results.get(part.id) ?? 'null'),
            })),
          text: parts.filter((part) => part.type === 'text').at(-1)?.content,
          sent,
        }
      },
      async (client, turns) => {
        for (const { approvalId } of scenario.calls)
          await client.addToolApprovalResponse({ id: approvalId, approved: true })
        for (const until = Date.now() + 120_000; turns() < 2 || client.getIsLoading?.(); ) {
          if (Date.now() > until) throw new Error('it did not continue after the last answer')
          await new Promise((resolve) => setImmediate(resolve))
        }
      },
    ),
}
