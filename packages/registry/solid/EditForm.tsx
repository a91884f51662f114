import {
  applyDraft,
  type Draft,
  type EditPreview,
  type EditSettings,
  editStep,
  type Field,
  fieldsOf,
  fitting,
  focusFirstField,
  focusFirstInvalid,
  focusWhole,
  leaveOnEscape,
  loadPreview,
  NO_PREVIEW,
  textOf,
} from '@countersign/client/ui'
import type { EditedPreview, ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/solid'
import { createMemo, createSignal, Index, Show } from 'solid-js'
import { EditField } from './EditField.js'
import { Preview } from './Preview.js'
import { takeFocus } from './takeFocus.js'

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
export function EditForm(props: EditFormProps) {
  const client = useChatClient()
  const [tried, setTried] = createSignal(false)
  const [expanded, setExpanded] = createSignal(false)
  const [preview, setPreview] = createSignal<EditPreview>(NO_PREVIEW)
  const fields = createMemo(() => fieldsOf(props.part.input, props.part.approval?.allowEdits ?? false))
  const edited = createMemo(() => fitting(props.part, applyDraft(fields(), props.draft), props.edits))
  const step = createMemo(() => editStep(props.part, edited(), preview(), expanded(), props.edits))
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
    if (!now.ok) focusFirstInvalid(event.currentTarget)
    else if (step().action === 'preview')
      void loadPreview(client(), props.edits, props.part, now.input, setPreview)
    else props.onApprove(now.changed ? now.input : undefined, step().preview)
  }

  return (
    <form
      class="approval-form"
      noValidate
      onSubmit={submit}
      onKeyDown={(event) => leaveOnEscape(event, props.onBack)}
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
      <Show when={step().view}>
        {(view) => (
          // It takes the focus, away from the button that asked for it.
          <div class="preview-edited" tabIndex={-1} ref={takeFocus}>
            <Preview view={view()} expanded={expanded()} />
            <Show when={view().hidden > 0}>
              <button
                type="button"
                class="button link"
                onClick={({ currentTarget }) => {
                  focusWhole(currentTarget)
                  setExpanded(true)
                }}
              >
                Show all
              </button>
            </Show>
          </div>
        )}
      </Show>
      <Show when={step().note}>
        <p class="approval-note" role="status">
          {step().note}
        </p>
      </Show>
      <div class="approval-choices">
        <button
          type="submit"
          class={step().action === 'approve' ? 'button approve' : 'button'}
          disabled={props.disabled || step().disabled}
        >
          {step().label}
        </button>
        <button type="button" class="button" onClick={() => props.onBack()}>
          Back
        </button>
        <Show when={step().canUndo}>
          <button
            type="button"
            class="button link"
            onClick={({ currentTarget }) => {
              focusFirstField(currentTarget)
              props.onChange({})
            }}
          >
            Undo my changes
          </button>
        </Show>
      </div>
    </form>
  )
}
