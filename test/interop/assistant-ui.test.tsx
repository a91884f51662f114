// @vitest-environment jsdom
import {
  type AssistantRuntime,
  AssistantRuntimeProvider,
  type ThreadHistoryAdapter,
  useAssistantTool,
} from '@assistant-ui/react'
import { useAgUiInterrupts, useAgUiRuntime, useAgUiSubmitInterruptResponses } from '@assistant-ui/react-ag-ui'
import { act, cleanup, render, waitFor } from '@testing-library/react'
import { HttpAgent } from 'ag-ui-client-0'
import { afterEach, expect } from 'vitest'
import { locateTool } from './http-agent.js'
import { cells, type PeerClient, type PeerOptions, theirClient } from './their-client.js'

afterEach(cleanup)

/** jsdom has an `AbortSignal` of its own, which the platform's `fetch` does not take. */
const { AbortController: PlatformAbortController } = await platform()

async function platform(): Promise<{ AbortController: typeof AbortController }> {
  const { runInThisContext } = await import('node:vm')
  return { AbortController: runInThisContext('AbortController') as typeof AbortController }
}

const platformFetch = (url: string, init: RequestInit = {}) => {
  const controller = new PlatformAbortController()
  init.signal?.addEventListener('abort', () => controller.abort())
  return fetch(url, { ...init, signal: controller.signal })
}

type AgentOption = Parameters<typeof useAgUiRuntime>[0]['agent']

interface Mounted {
  readonly runtime: AssistantRuntime
  readonly interrupts: ReturnType<typeof useAgUiInterrupts>
  readonly submit: ReturnType<typeof useAgUiSubmitInterruptResponses>
}

/** A page of assistant-ui with a thread, its approvals and one tool of its own. */
async function assistantUi({ url, locate }: PeerOptions, stored?: string): Promise<PeerClient> {
  const errors: string[] = []
  // its own copy of the class differs in nothing but the version
  const agent = new HttpAgent({ url, threadId: 'thread-1', fetch: platformFetch }) as object as AgentOption
  const history: ThreadHistoryAdapter = {
    load: async () => (stored === undefined ? { messages: [] } : JSON.parse(stored, reviveDate)),
    append: async () => {},
  }
  let mounted: Mounted | undefined
  function Page() {
    const runtime = useAgUiRuntime({
      agent,
      adapters: { history },
      onError: (error) => errors.push(error.message),
    })
    return (
      <AssistantRuntimeProvider runtime={runtime}>
        <Inside runtime={runtime} />
      </AssistantRuntimeProvider>
    )
  }

  function Inside({ runtime }: { runtime: AssistantRuntime }) {
    useAssistantTool({
      toolName: locateTool.name,
      description: locateTool.description,
      parameters: { type: 'object', properties: {} },
      execute: async () => locate(),
      render: () => null,
    })
    mounted = { runtime, interrupts: useAgUiInterrupts(), submit: useAgUiSubmitInterruptResponses() }
    return null
  }

  function page(): Mounted {
    if (!mounted) throw new Error('The page is not there.')
    return mounted
  }

  const messages = () => page().runtime.thread.getState().messages
  const parts = () => messages().flatMap(({ role, content }) => (role === 'assistant' ? content : []))
  const calls = () => parts().flatMap((part) => (part.type === 'tool-call' ? [part] : []))
  const open = () => calls().filter(({ approval }) => approval && approval.approved === undefined)

  /** Nothing runs, and nothing that was done leads to more. */
  async function idle(): Promise<void> {
    for (let quiet = 0; quiet < 6; ) {
      await act(() => new Promise((resolve) => setTimeout(resolve, 15)))
      quiet = page().runtime.thread.getState().isRunning ? 0 : quiet + 1
    }
  }

  async function answerEdited(answers: readonly unknown[]): Promise<void> {
    const { interrupts, submit } = page()
    const responses = interrupts.map(({ id }, index) => ({
      interruptId: id,
      status: 'resolved' as const,
      payload: answers[index],
    }))
    await act(() => submit(responses))
  }

  render(<Page />)
  await waitFor(() => expect(parts().length > 0 || stored === undefined).toBe(true), { timeout: 300_000 })
  await idle()

  return {
    async say(text) {
      await act(async () => page().runtime.thread.append({ role: 'user', content: [{ type: 'text', text }] }))
      await idle()
    },
    pending: () =>
      open().map(({ approval, toolName, args }) => ({ id: approval?.id ?? '', tool: toolName, input: args })),
    async answer(...answers) {
      if (answers.some(({ editedArgs }) => editedArgs !== undefined)) await answerEdited(answers)
      else
        for (const [index, { toolCallId }] of open().entries()) {
          const { approved = false, reason } = answers[index] ?? {}
          const message = messages().findLast(({ content }) =>
            content.some((part) => part.type === 'tool-call' && part.toolCallId === toolCallId),
          )
          const part = page()
            .runtime.thread.getMessageById(message?.id ?? '')
            .getMessagePartByToolCallId(toolCallId)
          await act(async () =>
            part.respondToToolApproval({ approved, ...(reason !== undefined && { reason }) }),
          )
        }
      await idle()
    },
    said: () =>
      parts()
        .map((part) => (part.type === 'text' ? part.text : ''))
        .join(' '),
    results: () =>
      Object.fromEntries(
        calls().flatMap(({ toolCallId, result }) =>
          result === undefined ? [] : [[toolCallId, JSON.stringify(result)]],
        ),
      ),
    errors: () => errors,
    abort: () => page().runtime.thread.cancelRun(),
    async reload() {
      const kept = JSON.stringify(page().runtime.thread.export())
      cleanup()
      return assistantUi({ url, locate }, kept)
    },
  }
}

function reviveDate(key: string, value: unknown): unknown {
  return key === 'createdAt' ? new Date(String(value)) : value
}

const name = 'assistant-ui 0.15.21 (react-ag-ui 0.0.57) on our server'
const open = (options: PeerOptions) => assistantUi(options)

theirClient(name, open, { error: () => withoutRejections(cells(open).error) })

/** A run that fails is told to `onError`, and leaves a rejected promise with nobody to catch it. */
async function withoutRejections(cell: () => Promise<void>): Promise<void> {
  const listeners = process.rawListeners('unhandledRejection') as NodeJS.UnhandledRejectionListener[]
  const rejected: unknown[] = []
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', (reason) => rejected.push(reason))
  try {
    await cell()
  } finally {
    process.removeAllListeners('unhandledRejection')
    for (const listener of listeners) process.on('unhandledRejection', listener)
  }
  expect(rejected.map(String)).toEqual(['Error: The model failed.'])
}
