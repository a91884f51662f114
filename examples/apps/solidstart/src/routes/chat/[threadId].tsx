import { approvalView, type InitialThread, nextStep, type Turn } from '@countersign/client'
import { serverThreads } from '@countersign/client/server-threads'
import { queuedText, unsentIn } from '@countersign/client/ui'
import { loadThread } from '@countersign/server'
import { useChat } from '@countersign/solid'
import { createAsync, query, useParams } from '@solidjs/router'
import { createSignal, For, Index, Show } from 'solid-js'
import { getAgent } from '~/server/agent'
import { userId } from '~/server/user'

const loadChat = query(async (threadId: string) => {
  'use server'
  const initialThread = await loadThread(await getAgent(), { subject: await userId(), threadId })
  return { threadId, initialThread }
}, 'chat')

const threads = serverThreads('/api/chat')

export default function Page() {
  const params = useParams<{ threadId: string }>()
  const loaded = createAsync(() => loadChat(params.threadId))
  return (
    <Show when={loaded()} keyed>
      {(chat) => <Chat {...chat} />}
    </Show>
  )
}

/** Each step of a reply has its own text. Of a call it says why its answer was refused or did not arrive. */
const textOf = (parts: Turn['parts']) =>
  parts
    .flatMap((part) => {
      if (part.type === 'text') return part.text
      return (part.type === 'tool-call' && nextStep(part)?.message) || []
    })
    .join('\n')

function Chat(props: { threadId: string; initialThread: InitialThread | undefined }) {
  const chat = useChat(() => ({ ...threads, ...props }))
  const [text, setText] = createSignal('')
  const approve = (event: SubmitEvent & { currentTarget: HTMLFormElement }, id: string, input: unknown) => {
    event.preventDefault()
    const count = Number(new FormData(event.currentTarget).get('count'))
    chat.addToolApprovalResponse({ id, approved: true, input: { ...Object(input), count } })
  }
  const send = (event: SubmitEvent) => {
    event.preventDefault()
    chat.sendMessage(text())
    setText('')
  }
  return (
    <>
      <Index each={chat.turns}>
        {(turn) => (
          <p style="white-space: pre-line">
            {turn().role}: {textOf(turn().parts)}
          </p>
        )}
      </Index>
      <For each={chat.pendingApprovals}>
        {(call) => (
          <Show when={approvalView(call)} keyed>
            {({ id, title, arguments: shown, choices, edit }) => (
              <fieldset>
                <legend>May {title.text} run?</legend>
                <pre>{shown?.text.text}</pre>
                <For each={choices}>
                  {({ label, disabled, response }) => (
                    <button
                      type="button"
                      disabled={disabled}
                      onClick={(event) => event.detail < 2 && chat.addToolApprovalResponse(response)}
                    >
                      {label}
                    </button>
                  )}
                </For>
                <Show when={edit.status === 'offered' && edit}>
                  {(offered) => (
                    <form onSubmit={(event) => approve(event, id, offered().input)}>
                      <input
                        name="count"
                        type="number"
                        min="1"
                        value={Object(offered().input).count}
                        aria-label="Count"
                      />
                      <button
                        type="submit"
                        disabled={offered().disabled}
                        onClick={(event) => event.detail > 1 && event.preventDefault()}
                      >
                        Approve This Count
                      </button>
                    </form>
                  )}
                </Show>
              </fieldset>
            )}
          </Show>
        )}
      </For>
      <For each={chat.queue}>{(queued) => <p>Not sent yet: {queuedText(queued)}</p>}</For>
      <Show when={chat.status === 'reconnecting'}>
        <p>The connection was lost. Trying again.</p>
      </Show>
      <Show when={chat.error}>
        {(error) => (
          <p role="alert">
            {error().message}{' '}
            <button type="button" onClick={() => chat.retry()}>
              Retry
            </button>
          </p>
        )}
      </Show>
      <Show when={unsentIn(chat)}>
        {(unsent) => (
          <p role="status">
            {unsent().title}{' '}
            <button type="button" onClick={() => chat.retry()}>
              {unsent().action}
            </button>
          </p>
        )}
      </Show>
      <form onSubmit={send}>
        <input value={text()} onInput={(event) => setText(event.currentTarget.value)} aria-label="Message" />
        <button type="submit">Send</button>
      </form>
    </>
  )
}
