import { applyDraft, type Draft, type Field, fieldsOf, textOf } from '@countersign/example-page/edit'
import { createMemo, createSignal, Index } from 'solid-js'
import { EditField } from './EditField.js'

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
export function EditForm(props: EditFormProps) {
  const [tried, setTried] = createSignal(false)
  const fields = createMemo(() => fieldsOf(props.input, props.allowEdits))
  const edited = createMemo(() => applyDraft(fields(), props.draft))
  const isUnchanged = () => {
    const now = edited()
    return now.ok && !now.changed
  }
  const errorOf = (field: Field) => {
    const now = edited()
    return tried() && !now.ok ? now.errors.get(field.key) : undefined
  }
  const typedIn = (field: Field) =>
    (Object.hasOwn(props.draft, field.key) ? props.draft[field.key] : undefined) ?? textOf(field)

  function submit(event: SubmitEvent & { currentTarget: HTMLFormElement }) {
    event.preventDefault()
    const now = edited()
    setTried(true)
    if (now.ok) props.onApprove(now.changed ? now.input : undefined)
    else event.currentTarget.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }

  return (
    <form
      class="approval-form"
      noValidate
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === 'Escape') props.onBack()
      }}
    >
      <Index each={fields()}>
        {(field) => (
          <EditField
            field={field()}
            value={typedIn(field())}
            error={errorOf(field())}
            isFirst={field() === fields().find((candidate) => candidate.editable)}
            onChange={(value) => props.onChange({ ...props.draft, [field().key]: value })}
          />
        )}
      </Index>
      <div class="approval-choices">
        <button type="submit" class="button approve" disabled={props.disabled}>
          {isUnchanged() ? 'Approve unchanged' : 'Approve with changes'}
        </button>
        <button type="button" class="button" onClick={() => props.onBack()}>
          Back
        </button>
        <button type="button" class="button link" onClick={() => props.onChange({})}>
          Undo my changes
        </button>
      </div>
    </form>
  )
}
