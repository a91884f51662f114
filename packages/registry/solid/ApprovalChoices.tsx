import type { ApprovalChoice, ApprovalView } from '@countersign/client'
import { type Answer, answerName, heldWords, SESSION_NOTE } from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { createUniqueId, Show } from 'solid-js'
import { Mandates } from './Mandates.js'

interface ApprovalChoicesProps {
  part: ToolCallPart
  view: ApprovalView
  onAnswer: (given: Answer) => void
  onEdit: () => void
  onDeny: () => void
}

export function ApprovalChoices(props: ApprovalChoicesProps) {
  const choice = (option: ApprovalChoice['option']) => props.view.choices.find((one) => one.option === option)
  const edit = () => (props.view.edit.status === 'offered' ? props.view.edit : undefined)
  const isHeld = () => props.view.hidden > 0
  const noteId = createUniqueId()
  const describedBy = () => (isHeld() ? noteId : undefined)
  return (
    <>
      <fieldset class="approval-choices">
        <legend class="visually-hidden">Your answer</legend>
        <Show when={choice('once')}>
          <button
            type="button"
            class="button approve"
            disabled={choice('once')?.disabled}
            aria-label={answerName('Approve once', props.part)}
            aria-describedby={describedBy()}
            onClick={() => props.onAnswer({ approved: true, scope: 'once' })}
          >
            Approve once
          </button>
        </Show>
        <Show when={edit()}>
          <button
            type="button"
            class="button"
            disabled={edit()?.disabled}
            aria-label={answerName('Edit…', props.part)}
            aria-describedby={describedBy()}
            onClick={() => props.onEdit()}
          >
            Edit…
          </button>
        </Show>
        <Show when={choice('session')}>
          <button
            type="button"
            class="button"
            disabled={choice('session')?.disabled}
            aria-label={answerName('Always (this session)', props.part)}
            aria-describedby={describedBy()}
            onClick={() => props.onAnswer({ approved: true, scope: 'session' })}
          >
            Always (this session)
          </button>
        </Show>
        <Show when={choice('deny')}>
          <button
            type="button"
            class="button deny"
            aria-label={answerName('Deny', props.part)}
            onClick={() => props.onAnswer({ approved: false })}
          >
            Deny
          </button>
          <button
            type="button"
            class="button link"
            aria-label={answerName('Deny with a reason…', props.part)}
            onClick={() => props.onDeny()}
          >
            Deny with a reason…
          </button>
        </Show>
      </fieldset>
      <Show when={choice('session')}>
        <p class="approval-note">{SESSION_NOTE}</p>
      </Show>
      <Mandates choices={props.view.mandates} onAnswer={(response) => props.onAnswer(response)} />
      <Show when={isHeld()}>
        <p class="approval-note" id={noteId}>
          {heldWords(props.view.hidden)}
        </p>
      </Show>
    </>
  )
}
