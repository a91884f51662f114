import { type Field, textBefore } from '@countersign/client/ui'
import { displayText } from '@countersign/core'
import { createUniqueId, Show } from 'solid-js'
import { SafeText } from './SafeText.js'
import { takeFocus } from './takeFocus.js'

interface EditFieldProps {
  field: Field
  value: string
  error: string | undefined
  /** Whether it is the first editable field, which is focused. */
  isFirst: boolean
  onChange: (value: string) => void
}

export function EditField(props: EditFieldProps) {
  const id = createUniqueId()
  const hint = () => {
    if (!props.field.editable) return 'cannot be changed'
    return props.field.kind === 'json' ? 'JSON' : undefined
  }
  return (
    <div class="field">
      <label class="field-label" for={id}>
        <SafeText text={props.field.key} />{' '}
        <Show when={hint()}>
          <span class="field-hint">{hint()}</span>
        </Show>
      </label>
      <textarea
        id={id}
        class="field-input"
        rows={Math.min(12, Math.max(1, props.value.split('\n').length))}
        value={props.value}
        readOnly={!props.field.editable}
        aria-invalid={props.error !== undefined}
        aria-describedby={props.error === undefined ? undefined : `${id}-error`}
        spellcheck={props.field.kind === 'text'}
        ref={(element) => {
          if (props.isFirst) takeFocus(element)
        }}
        onInput={(event) => props.onChange(event.currentTarget.value)}
      />
      {/* A text field does not reveal hidden characters, so they are written out below. */}
      <Show when={displayText(props.value).suspicious}>
        <p class="arguments-warning">
          Some characters are invisible or look like others: <SafeText text={props.value} />
        </p>
      </Show>
      <Show when={textBefore(props.field, props.value) !== undefined}>
        <p class="field-before">
          Before: <SafeText text={textBefore(props.field, props.value) ?? ''} />
        </p>
      </Show>
      <Show when={props.error}>
        {(error) => (
          <p class="field-error" id={`${id}-error`} role="alert">
            {error()}
          </p>
        )}
      </Show>
    </div>
  )
}
