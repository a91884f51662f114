import type { Turn as ShownTurn } from '@countersign/client'
import type { MessagePart, ToolCallPart } from '@countersign/core'
import { edits } from '@countersign/example-page/chat'
import type { DemoTools } from '@countersign/example-page/tools'
import { ToolCard } from '@countersign/registry/solid/ToolCard'
import { TurnActions } from '@countersign/registry/solid/TurnActions'
import { Index, Match, Show, Switch } from 'solid-js'
import { FileListing } from './FileListing.js'
import { Prose } from './Prose.js'

/** A user message, or a reply with all of its steps. While a reply streams, no other turn is checked. */
export function Turn(props: { turn: ShownTurn<DemoTools>; isLast: boolean }) {
  return (
    <article class="turn" data-role={props.turn.role}>
      <h2 class="visually-hidden">{props.turn.role === 'user' ? 'You' : 'Assistant'}</h2>
      {/* Parts grow in place: a delta puts a new part object at the same index. */}
      <Index each={props.turn.parts}>{(part) => <Part part={part()} role={props.turn.role} />}</Index>
      <TurnActions turn={props.turn} isLast={props.isLast} />
    </article>
  )
}

/** A tool's result is shown in the card of its call. */
function Part(props: { part: MessagePart<DemoTools>; role: ShownTurn['role'] }) {
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
        {(part) => <ToolCard part={part()} edits={edits} result={<ResultOf part={part()} />} />}
      </Match>
      <Match when={props.part.type === 'reasoning' && props.part}>
        {(part) => (
          <details class="reasoning">
            <summary>Reasoning</summary>
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

/** A list of files is shown as a table. */
function ResultOf(props: { part: ToolCallPart<DemoTools> }) {
  const listing = () => (props.part.name === 'list_files' ? props.part.output : undefined)
  return <Show when={listing()}>{(listing) => <FileListing listing={listing()} />}</Show>
}
