import type { ListedThread } from '@countersign/client/thread-list'
import { badgedTitle, failureWords, focusComposer } from '@countersign/client/ui'
import { addressOf } from './address.js'
import { client, list } from './chat.js'

export const CHATS_ID = 'chats'

/** What a conversation's row shows instead of its title. */
export type ChatForm = 'rename' | 'delete'

export interface ChatsSnapshot {
  readonly threads: readonly ListedThread[]
  readonly hasMore: boolean
  /** An error message. */
  readonly problem: string | undefined
  readonly form: { readonly threadId: string; readonly kind: ChatForm } | undefined
}

const listeners = new Set<() => void>()
let form: ChatsSnapshot['form']
let snapshot = read()
let leave = () => {}

function read(): ChatsSnapshot {
  const { threads = [], hasMore = false, error } = list?.getSnapshot() ?? {}
  return { threads, hasMore, problem: error && failureWords(error).title, form }
}

function changed(): void {
  snapshot = read()
  showTitle()
  for (const listener of listeners) listener()
}

/** The title of the page: that of the conversation, and how much waits in it. */
function showTitle(): void {
  const shown = snapshot.threads.find(isShown)
  const title = badgedTitle(shown ? `${titleOf(shown)} – Countersign` : 'Countersign', client.getSnapshot())
  if (document.title !== title) document.title = title
}

client.subscribe(showTitle)

/** Follows the list, and loads it when a reply of the chat begins or ends. */
function follow(): () => void {
  const leaveList = list?.subscribe(changed)
  let { status } = client.getSnapshot()
  const leaveChat = client.subscribe(() => {
    const before = status
    status = client.getSnapshot().status
    if (status !== before && status !== 'submitted' && status !== 'executing') void list?.load()
  })
  return () => {
    leaveList?.()
    leaveChat()
  }
}

/** The conversations beside the chat. */
export const chats = {
  /** Whether the server has a list. */
  isOffered: list !== undefined,
  getSnapshot: () => snapshot,
  subscribe(listener: () => void): () => void {
    if (listeners.size === 0) leave = follow()
    listeners.add(listener)
    return () => {
      if (listeners.delete(listener) && listeners.size === 0) leave()
    }
  },
  load: () => void list?.load(),
  loadMore: () => void list?.loadMore(),
}

export function isShown({ threadId }: ListedThread): boolean {
  return threadId === client.threadId
}

export function titleOf({ title }: ListedThread): string {
  return title?.trim() || 'Untitled chat'
}

/** The id of the link to a conversation. */
export function chatLinkId({ threadId }: Pick<ListedThread, 'threadId'>): string {
  return `chat-${threadId}`
}

/** Escape closes the form. */
export function openForm(thread: ListedThread, kind: ChatForm): void {
  form = { threadId: thread.threadId, kind }
  changed()
  addEventListener('keydown', closeOnEscape, { capture: true })
}

/** Back to the title, which gets the focus. */
export function closeForm(): void {
  const { threadId = '' } = form ?? {}
  form = undefined
  removeEventListener('keydown', closeOnEscape, { capture: true })
  changed()
  focusLink(threadId)
}

/** Only the form, and not the drawer around it. */
function closeOnEscape(event: KeyboardEvent): void {
  if (event.key !== 'Escape') return
  event.preventDefault()
  closeForm()
}

/** Renames a conversation as its form says. An empty title changes nothing. */
export function submitTitle(
  event: Pick<Event, 'preventDefault' | 'currentTarget'>,
  thread: ListedThread,
): void {
  event.preventDefault()
  if (!(event.currentTarget instanceof HTMLFormElement)) return
  const title = String(new FormData(event.currentTarget).get('title')).trim()
  closeForm()
  if (title !== '' && title !== thread.title) void list?.rename(thread.threadId, title)
}

/** Deletes a conversation for good. If it is the one that is shown, a new one begins. */
export async function submitDelete(
  event: Pick<Event, 'preventDefault'>,
  thread: ListedThread,
): Promise<void> {
  event.preventDefault()
  const at = snapshot.threads.indexOf(thread)
  const next = snapshot.threads[at + 1] ?? snapshot.threads[at - 1]
  closeForm()
  if (!(await list?.remove(thread.threadId))) return
  if (isShown(thread)) {
    client.clear()
    location.replace(addressOf())
  } else if (next) focusLink(next.threadId)
  else focusComposer()
}

/** In the next frame, when it is there, unless the user has moved the focus by then. */
function focusLink(threadId: string): void {
  requestAnimationFrame(() => {
    if (document.activeElement === document.body) document.getElementById(chatLinkId({ threadId }))?.focus()
  })
}
