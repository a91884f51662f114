// A page without a framework: it redraws the conversation whenever it changes.
import {
  type ApprovalView,
  approvalView,
  ChatClient,
  nextStep,
  type ToolCallPart,
  type Turn,
  turnsOf,
} from '@countersign/client'
import { serverThreads } from '@countersign/client/server-threads'
import { queuedText, unsentIn } from '@countersign/client/ui'

const threadId = location.pathname.split('/').at(-1) ?? ''
const client = new ChatClient({ ...serverThreads('/api/chat'), threadId })

function element(name: string, ...children: (string | Node)[]): HTMLElement {
  const made = document.createElement(name)
  made.append(...children)
  return made
}

function button(label: string, disabled: boolean, act: () => unknown): HTMLElement {
  const onclick = (event: MouseEvent) => event.detail < 2 && act()
  const made = Object.assign(document.createElement('button'), { disabled, onclick })
  made.append(label)
  return made
}

/** Each step of a reply has its own text. Of a call it says why its answer was refused or did not arrive. */
const textOf = (parts: Turn['parts']) =>
  parts
    .flatMap((part) => {
      if (part.type === 'text') return part.text
      return (part.type === 'tool-call' && nextStep(part)?.message) || []
    })
    .join('\n')

/** A request is drawn once, and only when the list changes: what the user types into it stays, and so does the focus. */
const drawn = new WeakMap<ToolCallPart, HTMLElement>()
let asked: readonly ToolCallPart[] = []

function drawQuestions(calls: readonly ToolCallPart[]) {
  if (calls === asked) return
  asked = calls
  const questions = calls.flatMap((call) => {
    const view = approvalView(call)
    const question = drawn.get(call) ?? (view && questionOf(view))
    if (question) drawn.set(call, question)
    return question ?? []
  })
  document.querySelector('#questions')?.replaceChildren(...questions)
}

function questionOf({ id, title, arguments: shown, choices, edit }: ApprovalView): HTMLElement {
  const answers = choices.map(({ label, disabled, response }) =>
    button(label, disabled, () => client.addToolApprovalResponse(response)),
  )
  const text = shown?.text.text ?? ''
  const question = element('fieldset', element('legend', `May ${title.text} run?`), element('pre', text))
  question.append(...answers)
  if (edit.status === 'offered') {
    const { count: value } = Object(edit.input)
    const count = Object.assign(document.createElement('input'), { type: 'number', min: '1', value })
    count.setAttribute('aria-label', 'Count')
    const approve = () => {
      const input = { ...Object(edit.input), count: Number(count.value) }
      client.addToolApprovalResponse({ id, approved: true, input })
    }
    question.append(element('p', count, button('Approve This Count', edit.disabled, approve)))
  }
  return question
}

function draw() {
  const snapshot = client.getSnapshot()
  const { messages, pendingApprovals, queue, status, error } = snapshot
  const turns = turnsOf(messages).map(({ role, parts }) => element('p', `${role}: ${textOf(parts)}`))
  const waiting = queue.map((queued) => element('p', `Not sent yet: ${queuedText(queued)}`))
  const unsent = unsentIn(snapshot)
  const told = error ? error.message : unsent?.title
  const retry = button(unsent?.action ?? 'Retry', false, () => client.retry())
  const lost = status === 'reconnecting' ? [element('p', 'The connection was lost. Trying again.')] : []
  const problem = told ? [element('p', told, retry)] : lost
  document.querySelector('#turns')?.replaceChildren(...turns)
  drawQuestions(pendingApprovals)
  document.querySelector('#queue')?.replaceChildren(...waiting)
  document.querySelector('#problem')?.replaceChildren(...problem)
}

client.subscribe(draw)
client.attach()
draw()

document.querySelector('form')?.addEventListener('submit', (event) => {
  event.preventDefault()
  const form = event.currentTarget
  if (!(form instanceof HTMLFormElement)) return
  client.sendMessage(String(new FormData(form).get('text')))
  form.reset()
})
