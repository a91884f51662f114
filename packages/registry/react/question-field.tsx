import { describedBy, type QuestionField as Field, noteOf, rowsOf } from '@countersign/client/ui'
import { displayText } from '@countersign/core'
import { useId } from 'react'
import { SafeText } from './safe-text'

interface QuestionFieldProps {
  field: Field
  value: string
  fault: string | undefined
  onChange: (value: string) => void
}

/** One field of the form: its label, its description, its control, and its error. */
export function QuestionField({ field, value, fault, onChange }: QuestionFieldProps) {
  const id = useId()
  const note = noteOf(field)
  const described = describedBy(id, field, fault)
  return (
    <div className={field.control.kind === 'flag' ? 'field is-flag' : 'field'}>
      <label className="field-label" htmlFor={id}>
        <SafeText text={field.label} /> {note && <span className="field-hint">{note}</span>}
      </label>
      {field.description !== undefined && (
        <p className="field-hint" id={described.hint}>
          <SafeText text={field.description} />
        </p>
      )}
      <Control field={field} id={id} value={value} fault={fault} onChange={onChange} />
      {(field.control.kind === 'text' || field.control.kind === 'json') && <HiddenCharacters value={value} />}
      {fault !== undefined && (
        <p className="field-error" id={described.fault} role="alert">
          <SafeText text={fault} />
        </p>
      )}
    </div>
  )
}

function Control({ field, id, value, fault, onChange }: QuestionFieldProps & { id: string }) {
  const { control, required } = field
  const common = {
    id,
    'aria-invalid': fault !== undefined,
    'aria-describedby': describedBy(id, field, fault).ids,
  }
  const typed = {
    ...common,
    className: 'field-input',
    required,
    value,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  }
  switch (control.kind) {
    case 'text':
      if (control.isLong) return <textarea {...typed} rows={rowsOf(value)} />
      return <input {...typed} type={control.input} autoComplete="off" />
    case 'number':
      // Not `type="number"`: it would hide invalid input from the page.
      return <input {...typed} inputMode={control.whole ? 'numeric' : 'decimal'} autoComplete="off" />
    case 'flag':
      return (
        <input
          {...common}
          type="checkbox"
          checked={value === 'true'}
          onChange={(event) => onChange(String(event.target.checked))}
        />
      )
    case 'choice':
      return (
        <select {...typed}>
          <option value="">Choose…</option>
          {control.choices.map(({ label }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the choices of one question stay as they are
            <option key={index} value={index}>
              {displayText(label, { multiline: false }).text}
            </option>
          ))}
        </select>
      )
    case 'json':
      return <textarea {...typed} rows={rowsOf(value)} spellCheck={false} />
    default:
      return control satisfies never
  }
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
