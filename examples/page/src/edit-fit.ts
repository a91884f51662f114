import { isRecord, type ToolCallPart } from '@countersign/core'
import type { Edited } from './edit.js'
import { sendEmail, writeFile } from './tools.js'

/** The tools whose arguments may be edited. Another server than the demo's may have tools that are not in this list. */
export const editableTools = [writeFile, sendEmail]

/** Refuses edited arguments that do not fit the schema of their tool, with a message for each field: nothing is sent. The server checks too. */
export function fitting({ name }: ToolCallPart, edited: Edited): Edited {
  const tool = editableTools.find((one) => one.name === name)
  if (tool === undefined || !edited.ok || !edited.changed) return edited
  const checked = tool.input['~standard'].validate(edited.input)
  if (!('issues' in checked) || checked.issues === undefined) return edited
  const [first = ''] = Object.keys(edited.input)
  const errors = checked.issues.map(({ path: [step = first] = [], message }): [string, string] => {
    const key = String(isRecord(step) ? step.key : step)
    return [Object.hasOwn(edited.input, key) ? key : first, message]
  })
  return { ok: false, errors: new Map(errors.toReversed()) }
}
