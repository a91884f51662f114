import { Chat } from '@ai-sdk/react'
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'
import { frame } from '../scenarios.mjs'
import { bodyOf } from './agui-server.mjs'

/** `AbstractChat` with the state of `@ai-sdk/react`, without a throttle, which is its default. */
function open(scenario, transport) {
  let published = 0
  let size = 0
  let finished = 0
  let wake = () => {}
  const errors = []
  const chat = new Chat({
    messages: scenario.history.map(({ id, role, text }) => ({ id, role, parts: [{ type: 'text', text }] })),
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: (error) => errors.push(error),
    onFinish: () => {
      finished++
      wake()
    },
  })
  chat['~registerMessagesCallback'](() => {
    const part = chat.messages.at(-1)?.parts.at(-1)
    const now =
      scenario.kind === 'args'
        ? part?.input === undefined
          ? 0
          : JSON.stringify(part.input).length && size + 1
        : part?.text?.length
    if (now > size) {
      size = now
      published++
    }
  })
  return {
    chat,
    published: () => published,
    async finishes(count) {
      while (finished < count) {
        if (errors.length > 0) throw errors[0]
        await new Promise((resolve) => {
          wake = resolve
        })
      }
      if (errors.length > 0) throw errors[0]
    },
  }
}

function chunkStream(chunks) {
  const all = [
    { type: 'start' },
    { type: 'start-step' },
    ...chunks,
    { type: 'finish-step' },
    { type: 'finish' },
  ]
  let next = 0
  return new ReadableStream({
    pull(controller) {
      for (let i = 0; i < 64 && next < all.length; i++) controller.enqueue(all[next++])
      if (next === all.length) controller.close()
    },
  })
}

function session(scenario, result, act = async () => {}) {
  let turn = 0
  let clock
  const sent = []
  const runs = [...scenario.chunks('all')]
  const transport = {
    async sendMessages({ messages }) {
      clock.start()
      if (turn > 0)
        for (const part of messages.at(-1).parts) if (part.approval?.approved) sent.push(part.approval.id)
      const chunks = runs[turn]
      runs[turn++] = undefined
      return chunkStream(chunks)
    },
    reconnectToStream: async () => null,
  }
  const chat = open(scenario, transport)
  return {
    chat: chat.chat,
    async run(real) {
      clock = real
      for (let i = 1; i <= (scenario.turns ?? 1); i++) {
        await chat.chat.sendMessage({ text: 'go' })
        await chat.finishes(i)
      }
      await act(chat)
    },
    result: () => ({ ...result(chat.chat, sent), published: chat.published() }),
  }
}

const readText = (chat) => ({
  text: chat.messages.at(-1).parts.find((part) => part.type === 'text').text,
  history: chat.messages.slice(0, -2).map(({ parts }) => parts[0].text),
})

const encoder = new TextEncoder()

export const aiSdk = {
  text: (scenario) => session(scenario, readText),
  args: (scenario) =>
    session(scenario, (chat) => ({
      input: chat.messages.at(-1).parts.find((part) => 'toolCallId' in part).input,
    })),
  calls: (scenario) =>
    session(
      scenario,
      (chat, sent) => {
        const parts = chat.messages.flatMap((message) => message.parts)
        return {
          calls: parts
            .filter((part) => 'toolCallId' in part)
            .map((part) => ({ id: part.toolCallId, approved: part.approval?.approved, output: part.output })),
          text: parts.filter((part) => part.type === 'text').at(-1).text,
          sent,
        }
      },
      async ({ chat, finishes }) => {
        for (const { approvalId } of scenario.calls)
          await chat.addToolApprovalResponse({ id: approvalId, approved: true })
        await finishes(2)
      },
    ),
  sse(scenario) {
    let clock
    const transport = new DefaultChatTransport({
      api: 'http://bench.invalid/chat',
      fetch: async () => {
        clock.start()
        const head = encoder.encode(frame({ type: 'start' }) + frame({ type: 'start-step' }))
        const tail = encoder.encode(
          `${frame({ type: 'finish-step' })}${frame({ type: 'finish' })}data: [DONE]\n\n`,
        )
        return new Response(bodyOf([head, ...scenario.chunks('all'), tail]), {
          headers: { 'content-type': 'text/event-stream' },
        })
      },
    })
    const chat = open(scenario, transport)
    return {
      async run(real) {
        clock = real
        await chat.chat.sendMessage({ text: 'go' })
        await chat.finishes(1)
      },
      result: () => ({ ...readText(chat.chat), published: chat.published() }),
    }
  },
}
