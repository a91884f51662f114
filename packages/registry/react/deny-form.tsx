import { leaveOnEscape } from '@countersign/client/ui'
import { useId } from 'react'

interface DenyFormProps {
  reason: string
  onChange: (reason: string) => void
  onDeny: () => void
  onBack: () => void
}

/** A denial, with a reason for the assistant. Escape goes back and keeps what was typed. */
export function DenyForm({ reason, onChange, onDeny, onBack }: DenyFormProps) {
  const id = useId()
  return (
    <form
      className="approval-form"
      onSubmit={(event) => {
        event.preventDefault()
        onDeny()
      }}
      onKeyDown={(event) => leaveOnEscape(event, onBack)}
    >
      <label className="field-label" htmlFor={id}>
        Reason <span className="field-hint">Optional. The assistant sees it.</span>
      </label>
      <input
        id={id}
        className="field-input"
        value={reason}
        onChange={(event) => onChange(event.target.value)}
        autoComplete="off"
        // biome-ignore lint/a11y/noAutofocus: the user just opened this form
        autoFocus
      />
      <div className="approval-choices">
        <button type="submit" className="button deny is-final">
          Deny
        </button>
        <button type="button" className="button" onClick={onBack}>
          Back
        </button>
      </div>
    </form>
  )
}
