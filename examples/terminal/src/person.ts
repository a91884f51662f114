import { displayText } from '@countersign/core'
import { offerOf, parseAnswer, questionOf } from './answer.js'
import { approve, chooseMandate, type Decision, deny, type EditedCall, type Request } from './decide.js'
import { editorText, readEdited } from './edit.js'
import { openEditor } from './editor.js'
import { dropTypedAhead, prompt } from './prompt.js'
import { renderRequest, screenLimits } from './request-card.js'

/** Asks the user about one request: again in full if it was shortened, and again after each edit. */
export async function askPerson(request: Request, write: (text: string) => void): Promise<Decision> {
  const { id } = request.view
  let edited: EditedCall | undefined
  let expanded = false
  for (;;) {
    const { columns, rows } = process.stdout
    const view = request.viewOf(
      edited,
      expanded ? {} : screenLimits(columns, rows, request.previewEdits !== undefined),
    )
    // A mandate was offered for the arguments as the model wrote them.
    const offer = offerOf(edited ? { ...view, mandates: [] } : view)
    await dropTypedAhead()
    write(renderRequest(view, { more: request.more, edited: edited !== undefined }, columns))
    const answer = parseAnswer(await prompt(questionOf(offer)), offer)
    switch (answer.kind) {
      case 'once':
      case 'session':
        return approve(id, answer.kind, edited)
      case 'mandate': {
        const chosen = view.mandates[answer.at]
        if (chosen) return chooseMandate(chosen)
        break
      }
      case 'deny':
        return deny(id, answer.because)
      case 'more':
        expanded = true
        break
      case 'edit':
        edited = (await edit(request, edited, write)) ?? edited
        expanded = false
        break
      default:
        answer satisfies never
    }
  }
}

/** The arguments after the editor was closed; `undefined` if they are unchanged or unusable. */
async function edit(
  { view, previewEdits }: Request,
  before: EditedCall | undefined,
  write: (text: string) => void,
): Promise<EditedCall | undefined> {
  if (view.edit.status !== 'offered') return undefined
  const editable = { keys: view.edit.keys, input: before ? before.input : view.edit.input }
  const saved = await openEditor(editorText(editable))
  const read = saved.kind === 'saved' ? readEdited(editable, saved.text) : saved
  switch (read.kind) {
    case 'changed':
      return previewed(read.input, previewEdits, write)
    case 'unchanged':
      write('Nothing was changed.\n')
      return undefined
    case 'unusable':
    case 'failed':
      write(`${read.message} Nothing was changed.\n`)
      return undefined
    default:
      return read satisfies never
  }
}

/** With the preview of the edited arguments, which is shown before they can be approved. */
async function previewed(
  input: unknown,
  previewEdits: Request['previewEdits'],
  write: (text: string) => void,
): Promise<EditedCall | undefined> {
  if (previewEdits === undefined) return { input }
  try {
    return { input, edited: await previewEdits(input) }
  } catch (error) {
    const why = displayText(error instanceof Error ? error.message : String(error), { multiline: false })
    write(`The changes cannot be previewed: ${why.text} Nothing was changed.\n`)
    return undefined
  }
}
