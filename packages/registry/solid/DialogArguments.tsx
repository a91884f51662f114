import type { ApprovalArguments } from '@countersign/client'
import { Show } from 'solid-js'
import { MaskedNote } from './MaskedNote.js'
import { Segments } from './SafeText.js'

interface DialogArgumentsProps {
  shown: ApprovalArguments | undefined
  /** How many characters of the request are not shown. */
  hidden: number
  /** Some of its characters are hidden or look like others. */
  suspicious: boolean
  /** The user has asked to see everything. */
  expanded: boolean
  exact: boolean
  onExpand: () => void
  onExact: () => void
}

/** The arguments, as the user must see them before approving. */
export function DialogArguments(props: DialogArgumentsProps) {
  return (
    <div class="dialog-arguments" data-whole={props.expanded || undefined}>
      <Show when={props.shown?.text}>
        {(text) => (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
          <pre class="code-block" tabIndex={0}>
            <Segments shown={text()} />
            <Show when={text().hidden > 0}>
              <span class="argument-more">…</span>
            </Show>
          </pre>
        )}
      </Show>
      <Show when={props.hidden > 0}>
        <button type="button" class="button link" onClick={() => props.onExpand()}>
          Show all
        </button>
      </Show>
      <Show when={props.suspicious}>
        <p class="arguments-warning">
          Careful: some characters here are invisible or look like others. They are written out or underlined.
        </p>
      </Show>
      <Show when={props.shown?.revealable}>
        <MaskedNote exact={props.exact} onToggle={() => props.onExact()} />
      </Show>
    </div>
  )
}
