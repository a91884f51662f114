import type { ChatClient, MessagePart, ToolCallPart } from '@countersign/client'
import {
  ChatProvider,
  type UseChat,
  useChat,
  useChatSelector,
  useMessage,
  useMessageIds,
  usePendingApprovals,
} from '@countersign/react'
import type { PageUse } from '@countersign/testing/suites'
import { memo, type ReactNode, useRef } from 'react'

/** What the pages tell the harness. */
export interface Probe {
  readonly renders: Map<string, number>
  /** What the first page's `useChat` returned last. */
  chat: UseChat | undefined
}

interface PagesProps {
  use: PageUse
  probe: Probe
  pages: number
}

export function Pages({ use, probe, pages }: PagesProps): ReactNode {
  const names = Array.from({ length: pages }, (_, at) => `page ${at}`)
  const all = names.map((name) => <Page key={name} use={use} probe={probe} first={name === names[0]} />)
  const provider = 'options' in use ? use.provider : undefined
  if (!provider) return all
  if ('client' in provider) return <ChatProvider client={provider.client}>{all}</ChatProvider>
  const { connection } = provider.options
  if (!connection) throw new Error('A provider with options needs a connection.')
  return <ChatProvider options={{ ...provider.options, connection }}>{all}</ChatProvider>
}

function Page({ use, probe, first }: { use: PageUse; probe: Probe; first: boolean }) {
  const chat = useChat('client' in use ? { client: use.client } : use.options)
  if (first) probe.chat = chat
  const { client } = chat
  const count = useChatSelector(({ messages }) => messages.length, undefined, { client })
  return (
    <main data-status={chat.status} data-loading={chat.isLoading}>
      <span data-count>{count}</span>
      <Messages client={client} renders={probe.renders} />
      <Turns turns={chat.turns} />
      <Approvals client={client} />
      <Composer chat={chat} />
      <p data-error-message>{chat.error?.message}</p>
      <ol data-queue>
        {chat.queue.map(({ id, message }) => (
          <li key={id}>{message.parts.map((part) => (part.type === 'text' ? part.text : ''))}</li>
        ))}
      </ol>
    </main>
  )
}

interface MessagesProps {
  client: ChatClient
  renders: Map<string, number>
}

const Messages = memo(({ client, renders }: MessagesProps) =>
  useMessageIds({ client }).map((id) => <Message key={id} id={id} client={client} renders={renders} />),
)

const Message = memo(({ id, client, renders }: MessagesProps & { id: string }) => {
  renders.set(id, (renders.get(id) ?? 0) + 1)
  const message = useMessage(id, { client })
  return (
    <article data-message={id} data-role={message?.role}>
      {message?.parts.map((part, at) => (
        <Part key={keyOf(part, at)} part={part} />
      ))}
    </article>
  )
})

const Turns = memo(({ turns }: Pick<UseChat, 'turns'>) => (
  <ol data-turns>
    {turns.map(({ id, parts }) => (
      <li key={id}>{parts.map((part) => (part.type === 'tool-call' ? part.state : part.type)).join(' ')}</li>
    ))}
  </ol>
))

function keyOf(part: MessagePart, at: number): string {
  return part.type === 'tool-call' ? part.id : `${part.type} ${at}`
}

function Part({ part }: { part: MessagePart }) {
  if (part.type === 'text') return <p data-text>{part.text}</p>
  if (part.type !== 'tool-call') return null
  const { id, name, state, approval, input, output, error } = part
  return (
    <section
      data-call={id}
      data-name={name}
      data-state={state}
      data-approved={approval?.approved}
      data-reason={approval?.reason}
    >
      <pre data-input>{JSON.stringify(input)}</pre>
      <output data-output>{JSON.stringify(output)}</output>
      <p data-error>{error?.message}</p>
    </section>
  )
}

function Approvals({ client }: { client: ChatClient }) {
  return usePendingApprovals({ client }).map((part) => <Approval key={part.id} part={part} client={client} />)
}

function Approval({ part: { approval }, client }: { part: ToolCallPart; client: ChatClient }) {
  const reason = useRef<HTMLInputElement>(null)
  const edit = useRef<HTMLInputElement>(null)
  if (!approval) return null
  const answer = (approved: boolean, scope?: 'session') => {
    void client.addToolApprovalResponse({
      id: approval.id,
      approved,
      ...(reason.current?.value && { reason: reason.current.value }),
      ...(edit.current?.value && { input: JSON.parse(edit.current.value) }),
      ...(scope && { scope }),
    })
  }
  return (
    <form data-approval={approval.id}>
      <input name="reason" ref={reason} />
      <input name="edit" ref={edit} />
      <button type="button" name="approve" onClick={() => answer(true)} />
      <button type="button" name="deny" onClick={() => answer(false)} />
      {approval.options.includes('session') && (
        <button type="button" name="session" onClick={() => answer(true, 'session')} />
      )}
    </form>
  )
}

function Composer({ chat }: { chat: UseChat }) {
  const text = useRef<HTMLInputElement>(null)
  return (
    <form data-composer>
      <input name="text" ref={text} />
      <button type="button" name="send" onClick={() => void chat.sendMessage(text.current?.value ?? '')} />
      <button type="button" name="stop" onClick={chat.stop} />
      <button type="button" name="retry" onClick={() => void chat.retry()} />
      <button type="button" name="clear" onClick={chat.clear} />
    </form>
  )
}
