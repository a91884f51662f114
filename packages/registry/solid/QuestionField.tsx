import { describedBy, type QuestionField as Field, noteOf, rowsOf } from '@countersign/client/ui'
import { displayText } from '@countersign/core'
import { createUniqueId, For, mergeProps, Show } from 'solid-js'
import { SafeText } from './SafeText.js'

interface QuestionFieldProps {
  field: Field
  value: string
  fault: string | undefined
  onChange: (value: string) => void
}

/** One field of the form: its label, its description, its control, and its error. */
export function QuestionField(props: QuestionFieldProps) {
  const id = createUniqueId()
  const described = () => describedBy(id, props.field, props.fault)
  const isTyped = () => props.field.control.kind === 'text' || props.field.control.kind === 'json'
  return (
    <div class="field" classList={{ 'is-flag': props.field.control.kind === 'flag' }}>
      <label class="field-label" for={id}>
        <SafeText text={props.field.label} />{' '}
        <Show when={noteOf(props.field)}>{(note) => <span class="field-hint">{note()}</span>}</Show>
      </label>
      <Show when={props.field.description}>
        {(description) => (
          <p class="field-hint" id={described().hint}>
            <SafeText text={description()} />
          </p>
        )}
      </Show>
      <Control {...props} id={id} describedBy={described().ids} />
      {/* A text field does not reveal hidden characters, so they are written out below. */}
      <Show when={isTyped() && displayText(props.value).suspicious}>
        <p class="arguments-warning">
          Some characters are invisible or look like others: <SafeText text={props.value} />
        </p>
      </Show>
      <Show when={props.fault}>
        {(fault) => (
          <p class="field-error" id={described().fault} role="alert">
            <SafeText text={fault()} />
          </p>
        )}
      </Show>
    </div>
  )
}

function Control(props: QuestionFieldProps & { id: string; describedBy: string | undefined }) {
  const common = {
    get id() {
      return props.id
    },
    get 'aria-invalid'() {
      return props.fault !== undefined
    },
    get 'aria-describedby'() {
      return props.describedBy
    },
  }
  const typed = mergeProps(common, {
    get value() {
      return props.value
    },
    get required() {
      return props.field.required
    },
    class: 'field-input',
    onInput: (event: { currentTarget: { value: string } }) => props.onChange(event.currentTarget.value),
  })
  // The control of a field never changes.
  const { control } = props.field
  switch (control.kind) {
    case 'text':
      if (control.isLong) return <textarea {...typed} rows={rowsOf(props.value)} />
      return <input {...typed} type={control.input} autocomplete="off" />
    case 'number':
      // Not `type="number"`: it would hide invalid input from the page.
      return <input {...typed} inputMode={control.whole ? 'numeric' : 'decimal'} autocomplete="off" />
    case 'flag':
      return (
        <input
          {...common}
          type="checkbox"
          checked={props.value === 'true'}
          onChange={(event) => props.onChange(String(event.currentTarget.checked))}
        />
      )
    case 'choice':
      return (
        <select {...typed}>
          <option value="">Choose…</option>
          <For each={control.choices}>
            {({ label }, index) => (
              <option value={index()} selected={props.value === String(index())}>
                {displayText(label, { multiline: false }).text}
              </option>
            )}
          </For>
        </select>
      )
    case 'json':
      return <textarea {...typed} rows={rowsOf(props.value)} spellcheck={false} />
    default:
      return control satisfies never
  }
}
