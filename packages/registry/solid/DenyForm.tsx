import { leaveOnEscape } from '@countersign/client/ui'
import { createUniqueId } from 'solid-js'
import { takeFocus } from './takeFocus.js'

interface DenyFormProps {
  reason: string
  onChange: (reason: string) => void
  onDeny: () => void
  onBack: () => void
}

/** A denial, with a reason for the assistant. Escape goes back and keeps what was typed. */
export function DenyForm(props: DenyFormProps) {
  const id = createUniqueId()
  return (
    <form
      class="approval-form"
      onSubmit={(event) => {
        event.preventDefault()
        props.onDeny()
      }}
      onKeyDown={(event) => leaveOnEscape(event, props.onBack)}
    >
      <label class="field-label" for={id}>
        Reason <span class="field-hint">Optional. The assistant sees it.</span>
      </label>
      <input
        id={id}
        class="field-input"
        value={props.reason}
        autocomplete="off"
        ref={takeFocus}
        onInput={(event) => props.onChange(event.currentTarget.value)}
      />
      <div class="approval-choices">
        <button type="submit" class="button deny is-final">
          Deny
        </button>
        <button type="button" class="button" onClick={() => props.onBack()}>
          Back
        </button>
      </div>
    </form>
  )
}
