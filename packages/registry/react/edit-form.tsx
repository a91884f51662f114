import {
  applyDraft,
  type Draft,
  type EditSettings,
  editStep,
  type Field,
  fieldsOf,
  fitting,
  focusFirstField,
  focusFirstInvalid,
  leaveOnEscape,
  loadPreview,
  NO_PREVIEW,
  textBefore,
  textOf,
} from '@countersign/client/ui'
import { displayText, type EditedPreview, type ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/react'
import { type ReactNode, useId, useState } from 'react'
import { EditedPreviewOf } from './preview'
import { SafeText } from './safe-text'

interface EditFormProps {
  part: ToolCallPart
  edits: EditSettings
  /** Nothing can be approved yet, edited or not. */
  disabled: boolean
  draft: Draft
  onChange: (draft: Draft) => void
  /** Called with the complete edited arguments and their preview, or `undefined` if nothing was changed. */
  onApprove: (input: unknown, edited?: EditedPreview) => void
  onBack: () => void
}

/** The arguments field by field. Those that may not be edited are read-only. Escape goes back and keeps the draft. */
export function EditForm({ part, edits, disabled, draft, onChange, onApprove, onBack }: EditFormProps) {
  const client = useChatClient()
  const [tried, setTried] = useState(false)
  const [preview, setPreview] = useState(NO_PREVIEW)
  const [expanded, setExpanded] = useState(false)
  const fields = fieldsOf(part.input, part.approval?.allowEdits ?? false)
  const edited = fitting(part, applyDraft(fields, draft), edits)
  const errors = tried && !edited.ok ? edited.errors : undefined
  const step = editStep(part, edited, preview, expanded, edits)
  return (
    <form
      className="approval-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        setTried(true)
        if (!edited.ok) focusInvalidIn(event.currentTarget)
        else if (step.action === 'preview') void loadPreview(client, edits, part, edited.input, setPreview)
        else onApprove(edited.changed ? edited.input : undefined, step.preview)
      }}
      onKeyDown={(event) => leaveOnEscape(event, onBack)}
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
      {step.view && (
        <EditedPreviewOf view={step.view} expanded={expanded} onExpand={() => setExpanded(true)} />
      )}
      {step.note && (
        <p className="approval-note" role="status">
          {step.note}
        </p>
      )}
      <div className="approval-choices">
        <button
          type="submit"
          className={step.action === 'approve' ? 'button approve' : 'button'}
          disabled={disabled || step.disabled}
        >
          {step.label}
        </button>
        <button type="button" className="button" onClick={onBack}>
          Back
        </button>
        {step.canUndo && (
          <button
            type="button"
            className="button link"
            onClick={({ currentTarget }) => {
              focusFirstField(currentTarget)
              onChange({})
            }}
          >
            Undo my changes
          </button>
        )}
      </div>
    </form>
  )
}

/** Runs after React has marked the fields. */
function focusInvalidIn(form: HTMLFormElement): void {
  requestAnimationFrame(() => focusFirstInvalid(form))
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
  const before = textBefore(field, value)
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
      {before !== undefined && (
        <p className="field-before">
          Before: <SafeText text={before} />
        </p>
      )}
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
