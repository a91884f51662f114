import type { MessagePart, UIMessage } from '@countersign/core'
import type { DemoTools } from '@countersign/example-page/tools'
import { useMessage } from '@countersign/solid'
import { Index, Match, Show, Switch } from 'solid-js'
import { MessageActions } from './MessageActions.js'
import { Prose } from './Prose.js'
import { ToolCard } from './ToolCard.js'

/** One message, followed by itself: while an answer streams, no other message is looked at. */
export function Message(props: { id: string; isLast: boolean }) {
  const message = useMessage<DemoTools>(() => props.id)
  return (
    <Show when={message()}>
      {(shown) => (
        <article class="message" data-role={shown().role}>
          <h2 class="visually-hidden">{shown().role === 'user' ? 'You' : 'Assistant'}</h2>
          {/* Parts grow in place: a delta is another part at the same index. */}
          <Index each={shown().parts}>{(part) => <Part part={part()} role={shown().role} />}</Index>
          <Show when={props.isLast && shown().role === 'assistant'}>
            <MessageActions message={shown()} />
          </Show>
        </article>
      )}
    </Show>
  )
}

/** A tool's result is shown in the card of its call. */
function Part(props: { part: MessagePart<DemoTools>; role: UIMessage['role'] }) {
  return (
    <Switch>
      <Match when={props.part.type === 'text' && props.part}>
        {(part) => (
          <Show when={props.role === 'user'} fallback={<Prose text={part().text} />}>
            <p class="user-text">{part().text}</p>
          </Show>
        )}
      </Match>
      <Match when={props.part.type === 'tool-call' && props.part}>
        {(part) => <ToolCard part={part()} />}
      </Match>
      <Match when={props.part.type === 'reasoning' && props.part}>
        {(part) => (
          <details class="reasoning">
            <summary>Thoughts</summary>
            <Prose text={part().text} />
          </details>
        )}
      </Match>
      <Match when={props.part.type === 'source' && props.part}>
        {(part) => <p class="source">{part().title ?? part().url ?? part().id}</p>}
      </Match>
      <Match when={props.part.type === 'file' && props.part}>
        {(part) => <p class="source">A file ({part().media})</p>}
      </Match>
      <Match when={props.part.type === 'data' && props.part}>
        {(part) => <pre class="code-block">{JSON.stringify(part().data, null, 2)}</pre>}
      </Match>
    </Switch>
  )
}
