import { hiddenIn, lengthOfCut, type ShownArgument, showArguments } from '@countersign/example-page/arguments'
import { createMemo, Index, Show } from 'solid-js'
import { SafeText, Segments } from './SafeText.js'

interface ArgumentsProps {
  input: unknown
  /** Show everything, however long. */
  expanded?: boolean
  /** Without it nothing can be expanded, as while the arguments still arrive. */
  onExpand?: () => void
}

/** The arguments of a call, as the person must see them before saying yes. Renders nothing where there are none. */
export function Arguments(props: ArgumentsProps) {
  const shown = createMemo(() =>
    showArguments(props.input, props.expanded ? Number.POSITIVE_INFINITY : undefined),
  )
  return (
    <Show when={shown().length > 0}>
      <div class="arguments">
        <dl class="arguments-list">
          <Index each={shown()}>{(argument) => <Argument argument={argument()} />}</Index>
        </dl>
        <Show when={props.onExpand && hiddenIn(shown()) > 0}>
          <button type="button" class="button link" onClick={() => props.onExpand?.()}>
            Show all {lengthOfCut(shown()).toLocaleString('en')} characters
          </button>
        </Show>
        <Show when={shown().some((argument) => argument.shown.suspicious)}>
          <p class="arguments-warning">
            Careful: some characters here are invisible or look like others. They are written out or
            underlined.
          </p>
        </Show>
      </div>
    </Show>
  )
}

function Argument(props: { argument: ShownArgument }) {
  const shown = () => props.argument.shown
  return (
    <>
      <dt class="argument-key">
        <Show when={props.argument.key !== undefined} fallback="value">
          <SafeText text={props.argument.key ?? ''} />
        </Show>
      </dt>
      <dd class="argument-value" classList={{ 'is-json': !props.argument.isText }}>
        <Show
          when={shown().segments.length > 0 || shown().hidden > 0}
          fallback={<span class="argument-empty">empty</span>}
        >
          <Segments shown={shown()} />
        </Show>
        <Show when={shown().hidden > 0}>
          <span class="argument-more">… {shown().hidden.toLocaleString('en')} more</span>
        </Show>
      </dd>
    </>
  )
}
