/** @jsxImportSource solid-js */
import type { ChatClient, MessagePart, ToolCallPart } from '@countersign/client'
import {
  ChatProvider,
  type ChatProviderProps,
  type UseChat,
  useChat,
  useChatSelector,
  useMessage,
  useMessageIds,
  usePendingApprovals,
} from '@countersign/solid'
import type { PageUse } from '@countersign/testing/suites'
import { createMemo, For, Index, type JSX, Match, Show, Switch } from 'solid-js'

/** What the pages tell the harness. */
export interface Probe {
  /** How often the component of each message has run. */
  readonly renders: Map<string, number>
  /** What the first page's `useChat` returned. */
  chat: UseChat | undefined
}

export interface PagesProps {
  readonly use: PageUse
  readonly probe: Probe
  readonly pages: number
}

export function Pages(props: PagesProps): JSX.Element {
  const all = () => (
    <For each={Array.from({ length: props.pages }, (_, at) => at)}>
      {(at) => <Page use={props.use} probe={props.probe} first={at === 0} />}
    </For>
  )
  return (
    <Show when={'options' in props.use && props.use.provider} fallback={all()}>
      {(provider) => <ChatProvider {...providerProps(provider())}>{all()}</ChatProvider>}
    </Show>
  )
}

function providerProps(provider: Extract<PageUse, { options: unknown }>['provider']): ChatProviderProps {
  if (provider && 'client' in provider) return provider
  const { connection, ...options } = provider?.options ?? {}
  if (!connection) throw new Error('A provider with options needs a connection.')
  return { options: { ...options, connection } }
}

function Page(props: { use: PageUse; probe: Probe; first: boolean }) {
  const chat = useChat(() => ('client' in props.use ? { client: props.use.client } : props.use.options))
  if (props.first) props.probe.chat = chat
  const count = useChatSelector(({ messages }) => messages.length, undefined, chat)
  const ids = useMessageIds(chat)
  return (
    <main data-status={chat.status} data-loading={String(chat.isLoading)}>
      <span data-count>{count()}</span>
      <For each={ids()}>{(id) => <Message id={id} client={chat.client} renders={props.probe.renders} />}</For>
      <ol data-turns>
        <Index each={chat.turns}>
          {(turn) => (
            <li>
              {turn()
                .parts.map((part) => (part.type === 'tool-call' ? part.state : part.type))
                .join(' ')}
            </li>
          )}
        </Index>
      </ol>
      <Approvals client={chat.client} />
      <Composer chat={chat} />
      <p data-error-message>{chat.error?.message}</p>
      <ol data-queue>
        <For each={chat.queue}>
          {({ message }) => (
            <li>{message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')}</li>
          )}
        </For>
      </ol>
    </main>
  )
}

function Message(props: { id: string; client: ChatClient; renders: Map<string, number> }) {
  props.renders.set(props.id, (props.renders.get(props.id) ?? 0) + 1)
  const message = useMessage(() => props.id, props)
  return (
    <article data-message={props.id} data-role={message()?.role}>
      <Index each={message()?.parts}>{(part) => <Part part={part()} />}</Index>
    </article>
  )
}

function Part(props: { part: MessagePart }) {
  return (
    <Switch>
      <Match when={props.part.type === 'text' && props.part}>
        {(part) => <p data-text>{part().text}</p>}
      </Match>
      <Match when={props.part.type === 'tool-call' && props.part}>{(part) => <Call part={part()} />}</Match>
    </Switch>
  )
}

function Call(props: { part: ToolCallPart }) {
  return (
    <section
      data-call={props.part.id}
      data-name={props.part.name}
      data-state={props.part.state}
      data-approved={props.part.approval?.approved?.toString()}
      data-reason={props.part.approval?.reason}
    >
      <pre data-input>{JSON.stringify(props.part.input)}</pre>
      <output data-output>{JSON.stringify(props.part.output)}</output>
      <p data-error>{props.part.error?.message}</p>
    </section>
  )
}

/** By id, so that what a person has begun to write stays with the approval it was written for. */
function Approvals(props: { client: ChatClient }) {
  const pending = usePendingApprovals(props)
  const byId = createMemo(() => new Map(pending().map((part) => [part.approval?.id ?? '', part])))
  return (
    <For each={[...byId().keys()]}>
      {(id) => <Approval id={id} part={byId().get(id)} client={props.client} />}
    </For>
  )
}

function Approval(props: { id: string; part: ToolCallPart | undefined; client: ChatClient }) {
  let form: HTMLFormElement | undefined
  const answer = (approved: boolean, scope?: 'session') => {
    const [reason, edit] = ['reason', 'edit'].map((name) => field(form, name))
    void props.client.addToolApprovalResponse({
      id: props.id,
      approved,
      ...(reason && { reason }),
      ...(edit && { input: JSON.parse(edit) }),
      ...(scope && { scope }),
    })
  }
  return (
    <form data-approval={props.id} ref={(element) => (form = element)}>
      <input name="reason" />
      <input name="edit" />
      <button type="button" name="approve" onClick={() => answer(true)} />
      <button type="button" name="deny" onClick={() => answer(false)} />
      <Show when={props.part?.approval?.options.includes('session')}>
        <button type="button" name="session" onClick={() => answer(true, 'session')} />
      </Show>
    </form>
  )
}

function Composer(props: { chat: UseChat }) {
  let form: HTMLFormElement | undefined
  return (
    <form data-composer ref={(element) => (form = element)}>
      <input name="text" />
      <button type="button" name="send" onClick={() => void props.chat.sendMessage(field(form, 'text'))} />
      <button type="button" name="stop" onClick={() => props.chat.stop()} />
      <button type="button" name="retry" onClick={() => void props.chat.retry()} />
      <button type="button" name="clear" onClick={() => props.chat.clear()} />
    </form>
  )
}

function field(form: HTMLFormElement | undefined, name: string): string {
  return String(form ? (new FormData(form).get(name) ?? '') : '')
}
