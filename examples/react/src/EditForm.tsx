import { displayText } from '@countersign/core'
import { applyDraft, type Draft, type Field, fieldsOf, textOf } from '@countersign/example-page/edit'
import { type ReactNode, useId, useState } from 'react'
import { SafeText } from './SafeText.js'

interface EditFormProps {
  input: unknown
  allowEdits: boolean | readonly string[]
  /** Nothing can be approved yet, edited or not. */
  disabled: boolean
  draft: Draft
  onChange: (draft: Draft) => void
  /** Called with the complete edited arguments, or `undefined` if nothing was changed. */
  onApprove: (input: unknown) => void
  onBack: () => void
}

/** The arguments field by field. Those that may not be edited are read-only. Escape goes back and keeps the draft. */
export function EditForm({ input, allowEdits, disabled, draft, onChange, onApprove, onBack }: EditFormProps) {
  const [tried, setTried] = useState(false)
  const fields = fieldsOf(input, allowEdits)
  const edited = applyDraft(fields, draft)
  const errors = tried && !edited.ok ? edited.errors : undefined
  return (
    <form
      className="approval-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        setTried(true)
        if (edited.ok) onApprove(edited.changed ? edited.input : undefined)
        else focusFirstInvalid(event.currentTarget)
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onBack()
      }}
    >
      {fields.map((field, index) => (
        <EditField
          key={field.key}
          field={field}
          value={(Object.hasOwn(draft, field.key) ? draft[field.key] : undefined) ?? textOf(field)}
          error={errors?.get(field.key)}
          autoFocus={index === fields.findIndex((candidate) => candidate.editable)}
          onChange={(value) => onChange({ ...draft, [field.key]: value })}
        />
      ))}
      <div className="approval-choices">
        <button type="submit" className="button approve" disabled={disabled}>
          {edited.ok && !edited.changed ? 'Approve unchanged' : 'Approve with changes'}
        </button>
        <button type="button" className="button" onClick={onBack}>
          Back
        </button>
        <button type="button" className="button link" onClick={() => onChange({})}>
          Undo my changes
        </button>
      </div>
    </form>
  )
}

/** Runs after React has marked the fields. */
function focusFirstInvalid(form: HTMLFormElement): void {
  requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
}

interface EditFieldProps {
  field: Field
  value: string
  error: string | undefined
  autoFocus: boolean
  onChange: (value: string) => void
}

function EditField({ field, value, error, autoFocus, onChange }: EditFieldProps) {
  const id = useId()
  const hint = field.editable ? (field.kind === 'json' ? 'JSON' : undefined) : 'cannot be changed'
  const rows = Math.min(12, Math.max(1, value.split('\n').length))
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>
        <SafeText text={field.key} /> {hint && <span className="field-hint">{hint}</span>}
      </label>
      <textarea
        id={id}
        className="field-input"
        rows={rows}
        value={value}
        readOnly={!field.editable}
        aria-invalid={error !== undefined}
        aria-describedby={error === undefined ? undefined : `${id}-error`}
        spellCheck={field.kind === 'text'}
        // biome-ignore lint/a11y/noAutofocus: the user just opened this form
        autoFocus={autoFocus}
        onChange={(event) => onChange(event.target.value)}
      />
      <HiddenCharacters value={value} />
      {error !== undefined && <FieldError id={`${id}-error`}>{error}</FieldError>}
    </div>
  )
}

/** A text field does not reveal hidden characters, so they are written out below. */
function HiddenCharacters({ value }: { value: string }) {
  if (!displayText(value).suspicious) return null
  return (
    <p className="arguments-warning">
      Some characters are invisible or look like others: <SafeText text={value} />
    </p>
  )
}

function FieldError({ id, children }: { id: string; children: ReactNode }) {
  return (
    <p className="field-error" id={id} role="alert">
      {children}
    </p>
  )
}
