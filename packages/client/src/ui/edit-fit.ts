import type { ToolCallPart } from '@countersign/core'
import { issuesOf } from '../client-tools.js'
import type { ChatClientOptions } from '../options.js'
import type { Edited } from './edit-draft.js'

/** What the edit form needs to know of the server. */
export interface EditSettings {
  /** The tools whose schema the page has: edits that do not fit are refused before they are sent. Default: left to the server. */
  readonly tools?: ChatClientOptions['serverTools']
  /** The URL of `previewResponse`, for requests with a preview. Default: edits are approved without one. */
  readonly previewUrl?: string | undefined
}

/** Refuses edited arguments that do not fit the schema of their tool, with a message for each field: nothing is sent. The server checks too. */
export function fitting({ name }: ToolCallPart, edited: Edited, { tools = [] }: EditSettings): Edited {
  const tool = tools.find((one) => one.name === name)
  if (tool === undefined || !edited.ok || !edited.changed) return edited
  const issues = issuesOf(tool.input['~standard'].validate(edited.input))
  if (issues === undefined) return edited
  const [first = ''] = Object.keys(edited.input)
  const errors = issues.map(({ path: [key = first], message }): [string, string] => [
    Object.hasOwn(edited.input, key) ? key : first,
    message,
  ])
  return { ok: false, errors: new Map(errors.toReversed()) }
}
