import { ChatClient, type UIMessage } from '@countersign/client'
import {
  ChatProvider,
  useChatSelector,
  useMessage,
  useMessageIds,
  usePendingApprovals,
} from '@countersign/react'
import { screen } from '@testing-library/react'
import { StrictMode } from 'react'
import { hydrateRoot } from 'react-dom/client'
import { renderToString } from 'react-dom/server'
import { expect, test, vi } from 'vitest'
import { handAgent, text } from './agent.js'
import { after, expectNoWarnings, lines, Page, press, shown, words } from './page.js'

expectNoWarnings()

const initialMessages: readonly UIMessage[] = [
  { id: 'u', role: 'user', parts: [{ type: 'text', text: 'tidy up' }] },
  {
    id: 'm',
    role: 'assistant',
    parts: [
      {
        type: 'tool-call',
        id: 'c',
        name: 'delete_file',
        arguments: '{"path":"old.log"}',
        input: { path: 'old.log' },
        state: 'approval-requested',
        approval: {
          id: 'a-c',
          needsApproval: true,
          options: ['deny', 'once'],
          token: 'token-c',
          expiresAt: '2999-01-01T00:00:00.000Z',
        },
      },
    ],
  },
]

/** Rendered as on a server, and put into the page. */
function served(page: React.ReactNode): { html: string; root: HTMLElement } {
  const html = renderToString(page)
  const root = document.createElement('div')
  root.innerHTML = html
  document.body.replaceChildren(root)
  return { html, root }
}

test('S4.89 a server renders a pending approval without a request, a timer or an error', () => {
  const fetch = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('no network here'))
  const [timeout, interval] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'setInterval')]
  const { connection, requests } = handAgent()
  const html = renderToString(<Page options={{ connection, initialMessages }} />)
  expect(html).toContain('awaiting-approval')
  expect(html).toContain('[c approval-requested]')
  for (const spy of [fetch, timeout, interval]) expect(spy).not.toHaveBeenCalled()
  expect(requests).toHaveLength(0)
})

test('S4.89 a page with a pending approval hydrates without a warning, and the approval can be answered', async () => {
  const { connection, requests } = handAgent()
  const page = (
    <StrictMode>
      <Page options={{ connection, initialMessages, threadId: 't' }} />
    </StrictMode>
  )
  const { root } = served(page)
  const before = root.querySelector('fieldset')
  const recovered = vi.fn()
  let hydrated: ReturnType<typeof hydrateRoot> | undefined
  await after(() => {
    hydrated = hydrateRoot(root, page, { onRecoverableError: recovered })
  })
  expect(root.querySelector('fieldset')).toBe(before)
  expect(recovered).not.toHaveBeenCalled()
  expect([shown('status'), requests.length]).toEqual(['awaiting-approval', 0])
  await press('approve c')
  expect(requests[0]?.input.resume).toMatchObject([{ interruptId: 'a-c', payload: { approved: true } }])
  await after(() => hydrated?.unmount())
})

test('S4.89 what happened before the page was hydrated comes after it: every hook hydrates with the beginning', async () => {
  const { connection, requests } = handAgent()
  const make = () => new ChatClient({ connection, initialMessages, threadId: 't', notify: 'sync' })
  const Message = ({ id }: { id: string }) => {
    const message = useMessage(id)
    return <p>{message ? words(message) : ''}</p>
  }
  const Counts = () => {
    const pending = usePendingApprovals()
    const count = useChatSelector(({ messages }) => messages.length)
    return <output aria-label="counts">{`${pending.length} of ${count}`}</output>
  }
  const List = () => useMessageIds().map((id) => <Message key={id} id={id} />)
  const page = (client: ChatClient) => (
    <ChatProvider client={client}>
      <Page />
      <Counts />
      <List />
    </ChatProvider>
  )
  const { root } = served(page(make()))
  const client = make()
  await after(() => client.addToolApprovalResponse({ id: 'a-c', approved: true }))
  await after(() => requests[0]?.emit(...text('m2', 'Already here.')))

  const recovered = vi.fn()
  let hydrated: ReturnType<typeof hydrateRoot> | undefined
  await after(() => {
    hydrated = hydrateRoot(root, page(client), { onRecoverableError: recovered })
  })
  expect(recovered).not.toHaveBeenCalled()
  expect(lines().at(-1)).toBe('Already here.')
  expect(shown('counts')).toBe('0 of 3')
  expect(screen.getAllByText('Already here.')).toHaveLength(2)
  await after(() => hydrated?.unmount())
})
