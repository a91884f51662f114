import type { ArgumentField } from '@countersign/client'
import { focusWhole } from '@countersign/client/ui'
import { Index, Show } from 'solid-js'
import { Segments } from './SafeText.js'

interface ArgumentsProps {
  fields: readonly ArgumentField[]
  /** How many characters are not shown. */
  hidden: number
  /** Some characters are hidden or look like others. */
  suspicious: boolean
  /** The user has asked to see everything. */
  expanded?: boolean
  /** Absent if it cannot be expanded, for example while the arguments stream. */
  onExpand?: () => void
}

/** The arguments of a call, as the user must see them before approving. Renders nothing if there are none. */
export function Arguments(props: ArgumentsProps) {
  return (
    <Show when={props.fields.length > 0 || props.hidden > 0 || props.suspicious}>
      <div
        class="arguments"
        data-whole={props.expanded || undefined}
        tabIndex={props.onExpand ? -1 : undefined}
      >
        <dl class="arguments-list">
          <Index each={props.fields}>{(field) => <Argument field={field()} />}</Index>
        </dl>
        <Show when={props.onExpand && props.hidden > 0}>
          <button
            type="button"
            class="button link"
            onClick={({ currentTarget }) => {
              focusWhole(currentTarget)
              props.onExpand?.()
            }}
          >
            Show all: {props.hidden.toLocaleString('en')} more characters
          </button>
        </Show>
        <Show when={props.suspicious}>
          <p class="arguments-warning">
            Careful: some characters here are invisible or look like others. They are written out or
            underlined.
          </p>
        </Show>
      </div>
    </Show>
  )
}

function Argument(props: { field: ArgumentField }) {
  const shown = () => props.field.value
  return (
    <>
      <dt class="argument-key">
        <Show when={props.field.key} fallback="value">
          {(key) => <Segments shown={key()} />}
        </Show>
      </dt>
      <dd class="argument-value" classList={{ 'is-json': !props.field.isText }}>
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
