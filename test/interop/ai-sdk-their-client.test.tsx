// @vitest-environment jsdom
import { useChat } from '@ai-sdk/react'
import { act, cleanup, renderHook } from '@testing-library/react'
import type { UIMessage } from 'ai'
import { afterEach, expect } from 'vitest'
import { type AnyChat, chatClient, chatInit, PlainChat, plainChatClient } from './ai-sdk-chat.js'
import { openAiSdkAgent } from './ai-sdk-server.js'
import type { Cannot } from './matrix.js'
import { prompts } from './our-agent.js'
import { type PeerClient, type PeerOptions, theirClient } from './their-client.js'

afterEach(cleanup)

/** jsdom has an `AbortSignal` of its own, which the platform's `fetch` does not take. */
const { runInThisContext } = await import('node:vm')
const PlatformAbortController = runInThisContext('AbortController') as typeof AbortController

const platformFetch: typeof fetch = (url, init = {}) => {
  const controller = new PlatformAbortController()
  init.signal?.addEventListener('abort', () => controller.abort())
  return fetch(url, { ...init, signal: controller.signal })
}

/** A component with `useChat`, as its documentation shows it. */
async function hookClient(options: PeerOptions, stored: UIMessage[] = []): Promise<PeerClient> {
  function useMounted(): ReturnType<typeof useChat> {
    const chat: ReturnType<typeof useChat> = useChat(chatInit(options, platformFetch, stored, () => chat))
    return chat
  }
  const { result, unmount } = renderHook(useMounted)
  const current = (): AnyChat => result.current as AnyChat
  const reopen = (kept: UIMessage[]) => {
    unmount()
    return hookClient(options, kept)
  }
  return chatClient(current, reopen, (doing) => act(async () => void (await doing())))
}

/** `addToolApprovalResponse` takes a yes or a no; what a client writes into its own history is not what was asked. */
const edit: Cannot = {
  reason:
    'addToolApprovalResponse takes no arguments; arguments changed in its history are refused, and nothing runs',
  async prove() {
    const agent = await openAiSdkAgent()
    const options: PeerOptions = { url: agent.url, locate: () => null }
    const chat: PlainChat = new PlainChat(chatInit(options, platformFetch, [], () => chat))
    const client = chatClient(() => chat, plainChatClient.bind(undefined, options))
    await client.say(prompts.mail)
    chat.messages = JSON.parse(JSON.stringify(chat.messages).replace('"to":"ada"', '"to":"bob"'))
    expect(client.pending()).toMatchObject([{ input: { to: 'bob' } }])
    await client.answer({ approved: true })
    expect(agent.sent).toEqual([])
    expect(client.pending()).toEqual([])
    expect(client.errors()).toEqual([])
  },
}

theirClient('AI SDK DefaultChatTransport on our server', plainChatClient, { edit }, openAiSdkAgent)
theirClient('AI SDK useChat on our server', hookClient, { edit }, openAiSdkAgent)
