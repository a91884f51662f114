// @vitest-environment jsdom
import { ChatClient, stream } from '@countersign/client'
import { type CountersignDevtools, defineDevtools, maskRecording } from '@countersign/devtools'
import { afterEach, expect, test, vi } from 'vitest'

defineDevtools()

afterEach(() => document.body.replaceChildren())

const secret = 'correct horse'

/** A server that says hello, and asks whether a mail may go out. */
function openClient(): ChatClient {
  return new ChatClient({
    connection: stream(async function* ({ threadId, runId }) {
      yield { type: 'RUN_STARTED', threadId, runId } as const
      yield { type: 'TEXT_MESSAGE_START', messageId: runId, role: 'assistant' } as const
      for (const delta of ['Hel', 'lo <b>', 'you</b>.'])
        yield { type: 'TEXT_MESSAGE_CONTENT', messageId: runId, delta } as const
      yield { type: 'TEXT_MESSAGE_END', messageId: runId } as const
      yield { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'send_mail' } as const
      yield { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: JSON.stringify({ password: secret }) } as const
      yield { type: 'TOOL_CALL_END', toolCallId: 'c1' } as const
      const approval = { id: 'a1', needsApproval: true, options: ['deny', 'once'], token: 'the token' }
      const value = { toolCallId: 'c1', toolName: 'send_mail', input: { password: secret }, approval }
      yield { type: 'CUSTOM', name: 'approval-requested', value } as const
      yield { type: 'RUN_FINISHED', threadId, runId } as const
    }),
  })
}

function mount(client?: ChatClient): { element: CountersignDevtools; root: ShadowRoot } {
  const element = document.createElement('countersign-devtools')
  document.body.append(element)
  if (client) element.client = client
  const root = element.shadowRoot
  if (!root) throw new Error('The element has no shadow root.')
  return { element, root }
}

const find = <E extends Element = HTMLElement>(root: ShadowRoot, selector: string): E => {
  const found = root.querySelector<E>(selector)
  if (!found) throw new Error(`There is no ${selector}.`)
  return found
}

const buttonOf = (root: ShadowRoot, label: string) =>
  [...root.querySelectorAll('button')].find(({ textContent }) => textContent?.trim().startsWith(label))

const rowsIn = (root: ShadowRoot) => [...root.querySelectorAll<HTMLElement>('.row')]

async function shownChat() {
  const client = openClient()
  const { element, root } = mount(client)
  await client.sendMessage('Hello?')
  await vi.waitFor(() =>
    expect(rowsIn(root).some(({ textContent }) => textContent?.includes('RUN_FINISHED'))).toBe(true),
  )
  return { client, element, root }
}

test('requests, actions, events and states are listed; pieces of one text are one row', async () => {
  const { root } = await shownChat()
  const counts = [...root.querySelectorAll('.filter')].map(({ textContent }) => textContent?.trim())
  expect(counts).toEqual(['Requests 1', 'Events 11', 'States 8', 'Actions 1', 'Steps 2', 'Ends 1'])
  find(root, '.list').dispatchEvent(new KeyboardEvent('keydown', { key: 'Home' }))
  const pieces = rowsIn(root).filter(({ textContent }) => textContent?.includes('TEXT_MESSAGE_CONTENT'))
  expect(pieces).toHaveLength(1)
  expect(pieces[0]?.textContent).toContain('×3')
})

test('an entry that is chosen shows the chat then, as text, with secrets masked until they are asked for', async () => {
  const { root } = await shownChat()
  const row = rowsIn(root).find(({ textContent }) => textContent?.includes('RUN_FINISHED'))
  row?.click()
  const detail = find(root, '.detail')
  expect(row?.getAttribute('aria-selected')).toBe('true')
  expect(detail.textContent).toContain('Hello <b>you</b>.')
  expect(detail.querySelector('article b b')).toBeNull()
  expect(detail.textContent).toContain('[REDACTED]')
  expect(root.textContent).not.toContain(secret)
  buttonOf(root, 'Show values')?.click()
  expect(find(root, '.detail').textContent).toContain(secret)
})

test('End chooses the last entry that is recorded, also before it is drawn', async () => {
  const client = openClient()
  const { root } = mount(client)
  const list = find(root, '.list')
  vi.stubGlobal('requestAnimationFrame', () => 0)
  await client.sendMessage('Hello?')
  list.dispatchEvent(new KeyboardEvent('keydown', { key: 'End', bubbles: true, cancelable: true }))
  expect(find(root, '.detail').textContent).toContain('awaiting-approval')
  vi.unstubAllGlobals()
})

test('the list is one stop of the keyboard: arrows, Home and End choose', async () => {
  const { root } = await shownChat()
  const list = find(root, '.list')
  const press = (key: string) =>
    list.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
  const chosen = () => rowsIn(root).filter((row) => row.getAttribute('aria-selected') === 'true')
  press('Home')
  expect(chosen().map((row) => row.getAttribute('aria-posinset'))).toEqual(['1'])
  press('ArrowDown')
  expect(chosen().map((row) => row.getAttribute('aria-posinset'))).toEqual(['2'])
  expect(list.getAttribute('aria-activedescendant')).toBe(chosen()[0]?.id)
  press('End')
  const size = chosen()[0]?.getAttribute('aria-setsize')
  expect(chosen()[0]?.getAttribute('aria-posinset')).toBe(size)
})

test('every control has a name, and the regions are named', () => {
  const { root } = mount()
  for (const control of root.querySelectorAll('button')) expect(control.textContent?.trim()).not.toBe('')
  for (const named of root.querySelectorAll(
    'input, [role="listbox"], [role="region"], [role="toolbar"], [role="group"]',
  ))
    expect(named.getAttribute('aria-label')).toBeTruthy()
})

test('a kind can be hidden, the view held, and the timeline cleared', async () => {
  const { client, element, root } = await shownChat()
  buttonOf(root, 'Events')?.click()
  expect(rowsIn(root).filter(({ dataset }) => dataset.kind === 'event')).toEqual([])
  buttonOf(root, 'Events')?.click()
  buttonOf(root, 'Pause')?.click()
  const before = rowsIn(root).length
  client.clear()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(rowsIn(root)).toHaveLength(before)
  expect(element.recorder?.entries.length).toBeGreaterThan(before)
  buttonOf(root, 'Pause')?.click()
  buttonOf(root, 'Clear')?.click()
  expect(rowsIn(root)).toEqual([])
  expect(element.recorder?.entries).toEqual([])
})

test('a recording is shown in the place of the client, until it is left', async () => {
  const { element, root } = await shownChat()
  const recording = element.recorder?.recording()
  if (!recording) throw new Error('Nothing was recorded.')
  expect(recording).toEqual(maskRecording(recording))
  const other = mount()
  other.element.recording = recording
  expect(rowsIn(other.root).map(({ textContent }) => textContent)).toEqual(
    rowsIn(root).map(({ textContent }) => textContent),
  )
  expect(other.root.textContent).toContain('Recording: ')
  other.element.recording = undefined
  expect(rowsIn(other.root)).toEqual([])
})

test('an element that is taken out of the page leaves the client alone; one that is moved goes on', async () => {
  const { client, element } = await shownChat()
  const { recorder } = element
  document.body.prepend(element)
  await Promise.resolve()
  expect(element.recorder).toBe(recorder)
  element.remove()
  await new Promise((resolve) => setTimeout(resolve))
  expect(element.recorder).toBeUndefined()
  const count = recorder?.entries.length
  client.clear()
  expect(recorder?.entries).toHaveLength(count ?? -1)
})
