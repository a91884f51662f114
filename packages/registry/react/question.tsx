'use client'

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
import { useChatClient } from '@countersign/react'
import { type FormEvent, useState } from 'react'
import { AskedBy } from './asked-by'
import { Expiry } from './expiry'
import { QuestionField } from './question-field'
import { SafeText } from './safe-text'
import { ServerWords } from './server-words'

/** An interrupt that is no tool approval: who asks, the server's message, and a form for its schema. */
export function Question({ question }: { question: Interrupt }) {
  const client = useChatClient()
  const [draft, setDraft] = useState<QuestionDraft>({})
  const [faults, setFaults] = useState<Faults>(noFaults)
  // Set if the answer came too late or was not accepted.
  const [late, setLate] = useState<string>()
  const headingId = questionHeadingId(question)
  const problem = problemOf(question)

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    const read = readAnswer(question, draft)
    setFaults(read.ok ? noFaults : read.faults)
    if (read.ok) void answerQuestion(client, { id: question.id, payload: read.payload }).then(setLate)
    // Runs after React has marked the fields.
    else requestAnimationFrame(() => focusFirstInvalid(form))
  }

  return (
    <section className="tool question" data-tone="waiting" aria-labelledby={headingId}>
      <header className="tool-header">
        <h3 className="question-title" id={headingId} tabIndex={-1}>
          A question for you
        </h3>
      </header>
      <AskedBy askers={askersOf(question.metadata)} />
      {question.message && <ServerWords message={displayText(question.message)} />}
      {problem !== undefined && (
        <p className="tool-failure" role="alert">
          Your last answer was not accepted: <SafeText text={problem} />
        </p>
      )}
      <form className="approval-form" noValidate onSubmit={submit}>
        <fieldset className="question-fields">
          <legend className="visually-hidden">Your answer</legend>
          {questionFields(question).map((field) => (
            <QuestionField
              key={field.index}
              field={field}
              value={typedIn(field, draft)}
              fault={faults.get(field.index)}
              onChange={(value) => {
                setDraft({ ...draft, [field.index]: value })
                setFaults(withoutFault(faults, field.index))
              }}
            />
          ))}
        </fieldset>
        <FormFault fault={faults.get('form') ?? late} />
        <div className="approval-choices">
          <button type="submit" className="button approve">
            Send answer
          </button>
          <button
            type="button"
            className="button deny"
            onClick={() => void answerQuestion(client, { id: question.id, cancel: true }).then(setLate)}
          >
            Decline
          </button>
        </div>
      </form>
      {question.expiresAt && <Expiry at={question.expiresAt} />}
    </section>
  )
}

function FormFault({ fault }: { fault: string | undefined }) {
  if (fault === undefined) return null
  return (
    <p className="field-error" role="alert">
      <SafeText text={fault} />
    </p>
  )
}
