import { createAgent, type Model, scriptedModel } from '@countersign/server'
import { converse, type Decide } from './approval-loop.js'
import { calls, says } from './script.js'
import { deleteFile, type Files } from './tools.js'

/** Proposes to delete three files at once. */
export const batchModel = () =>
  scriptedModel([
    calls(
      ['c1', 'delete_file', { path: 'draft-1.md' }],
      ['c2', 'delete_file', { path: 'report.md' }],
      ['c3', 'delete_file', { path: 'draft-2.md' }],
    ),
    says('Both drafts are gone; the report stays.'),
  ])

/** Approves the two drafts and denies the report with a reason. */
const onlyDrafts: Decide = ({ arguments: text }) =>
  text.includes('draft') ? { approved: true } : { approved: false, reason: 'Only the drafts.' }

/** Three requests in one turn, answered in one message. All three have their result before the model continues. */
export function batch(files: Files, { model = batchModel(), decide = onlyDrafts }: BatchOptions = {}) {
  const agent = createAgent({ model, tools: [deleteFile(files)] })
  return converse(agent, 'Tidy up, please.', decide)
}

interface BatchOptions {
  readonly model?: Model
  readonly decide?: Decide
}
