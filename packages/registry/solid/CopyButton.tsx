import { copyText } from '@countersign/client/ui'
import { createSignal } from 'solid-js'

/** Copies a text, and says how that went. */
export function CopyButton(props: { label: string; text: string }) {
  const [said, setSaid] = createSignal<string>()
  return (
    <button
      type="button"
      class="button link copy"
      aria-live="polite"
      onClick={() => void copyText(props.text, props.label, setSaid)}
    >
      {said() ?? props.label}
    </button>
  )
}
