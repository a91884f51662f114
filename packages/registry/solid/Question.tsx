import {
  answerQuestion,
  askersOf,
  type Faults,
  focusFirstInvalid,
  noFaults,
  problemOf,
  type QuestionDraft,
  questionFields,
  questionHeadingId,
  readAnswer,
  typedIn,
  withoutFault,
} from '@countersign/client/ui'
import { displayText, type Interrupt } from '@countersign/core'
import { useChatClient } from '@countersign/solid'
import { createSignal, For, Show } from 'solid-js'
import { AskedBy } from './AskedBy.js'
import { Expiry } from './Expiry.js'
import { QuestionField } from './QuestionField.js'
import { SafeText } from './SafeText.js'
import { ServerWords } from './ServerWords.js'

/** An interrupt that is no tool approval: who asks, the server's message, and a form for its schema. */
export function Question(props: { question: Interrupt }) {
  const client = useChatClient()
  const [draft, setDraft] = createSignal<QuestionDraft>({})
  const [faults, setFaults] = createSignal<Faults>(noFaults)
  // Set if the answer came too late or was not accepted.
  const [late, setLate] = createSignal<string>()
  const headingId = () => questionHeadingId(props.question)

  function submit(event: SubmitEvent & { currentTarget: HTMLFormElement }) {
    event.preventDefault()
    const { question } = props
    const read = readAnswer(question, draft())
    setFaults(read.ok ? noFaults : read.faults)
    if (read.ok) void answerQuestion(client(), { id: question.id, payload: read.payload }).then(setLate)
    else focusFirstInvalid(event.currentTarget)
  }

  return (
    <section class="tool question" data-tone="waiting" aria-labelledby={headingId()}>
      <header class="tool-header">
        <h3 class="question-title" id={headingId()} tabIndex={-1}>
          A question for you
        </h3>
      </header>
      <AskedBy askers={askersOf(props.question.metadata)} />
      <Show when={props.question.message}>
        {(message) => <ServerWords message={displayText(message())} />}
      </Show>
      <Show when={problemOf(props.question)}>
        {(problem) => (
          <p class="tool-failure" role="alert">
            Your last answer was not accepted: <SafeText text={problem()} />
          </p>
        )}
      </Show>
      <form class="approval-form" noValidate onSubmit={submit}>
        <fieldset class="question-fields">
          <legend class="visually-hidden">Your answer</legend>
          <For each={questionFields(props.question)}>
            {(field) => (
              <QuestionField
                field={field}
                value={typedIn(field, draft())}
                fault={faults().get(field.index)}
                onChange={(value) => {
                  setDraft({ ...draft(), [field.index]: value })
                  setFaults(withoutFault(faults(), field.index))
                }}
              />
            )}
          </For>
        </fieldset>
        <Show when={faults().get('form') ?? late()}>
          {(fault) => (
            <p class="field-error" role="alert">
              <SafeText text={fault()} />
            </p>
          )}
        </Show>
        <div class="approval-choices">
          <button type="submit" class="button approve">
            Send answer
          </button>
          <button
            type="button"
            class="button deny"
            onClick={() =>
              void answerQuestion(client(), { id: props.question.id, cancel: true }).then(setLate)
            }
          >
            Decline
          </button>
        </div>
      </form>
      <Show when={props.question.expiresAt}>{(at) => <Expiry at={at()} />}</Show>
    </section>
  )
}
