import type { ToolCallPart, UIMessage } from '@countersign/client'
import { type UseChat, type UseChatOptions, useChat } from '@countersign/react'
import { act, cleanup, screen } from '@testing-library/react'
import { afterEach, beforeEach, expect, vi } from 'vitest'

/** A whole chat page in one component. Everything a test asks of it is on the screen. */
export function Page({
  options,
  onRender,
}: {
  options?: UseChatOptions
  onRender?: (chat: UseChat) => void
}) {
  const chat = useChat(options)
  onRender?.(chat)
  return (
    <main>
      <output aria-label="status">{chat.status}</output>
      <output aria-label="loading">{String(chat.isLoading)}</output>
      <output aria-label="error">{chat.error?.message ?? ''}</output>
      <ol>
        {chat.messages.map((message) => (
          <li key={message.id}>{words(message)}</li>
        ))}
      </ol>
      {chat.pendingApprovals.map((call) => (
        <Card key={call.id} call={call} chat={chat} />
      ))}
    </main>
  )
}

function Card({ call, chat }: { call: ToolCallPart; chat: UseChat }) {
  const answer = (approved: boolean) => {
    void chat.addToolApprovalResponse({
      id: call.approval?.id ?? '',
      approved,
      reason: approved ? '' : 'not now',
    })
  }
  return (
    <fieldset aria-label={call.id}>
      <button type="button" onClick={() => answer(true)}>
        approve {call.id}
      </button>
      <button type="button" onClick={() => answer(false)}>
        deny {call.id}
      </button>
    </fieldset>
  )
}

/** What a message shows: its texts, and its calls with their states. */
export function words({ parts }: UIMessage): string {
  return parts
    .map((part) =>
      part.type === 'text' ? part.text : part.type === 'tool-call' ? `[${part.id} ${part.state}]` : '',
    )
    .join('')
}

export const shown = (name: string): string | null => screen.getByLabelText(name).textContent

export const lines = (): (string | null)[] =>
  screen.queryAllByRole('listitem').map((item) => item.textContent)

export const press = (name: string): Promise<void> =>
  act(async () => {
    screen.getByRole('button', { name }).click()
    await turn()
  })

/** Does something and lets everything that follows from it happen. */
export const after = (deed: () => unknown = () => {}): Promise<void> =>
  act(async () => {
    void deed()
    await turn()
  })

const turn = () => new Promise((resolve) => setTimeout(resolve, 0))

/** React tells of its troubles by `console.error`: no test of this file may leave one. Also takes the page away. */
export function expectNoWarnings(): void {
  beforeEach(() => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.spyOn(console, 'warn').mockImplementation(() => {})
  })
  afterEach(() => {
    cleanup()
    expect(vi.mocked(console.error).mock.calls).toEqual([])
    expect(vi.mocked(console.warn).mock.calls).toEqual([])
    vi.restoreAllMocks()
  })
}
