import { type Preview, sameJson } from '@countersign/core'
import { type Mail, renderMail } from './mail.js'
import { size } from './report.js'
import { changedSamples } from './samples.js'
import { type Workspace, WorkspaceError } from './workspace.js'

/** How much of a file a preview shows before it is deleted. */
const FIRST_LINES = 5

/** What deleting a file would destroy. The time of the last change is absolute: an age would differ tomorrow, and the user be asked again. */
export async function previewDelete(workspace: Workspace, path: string): Promise<Preview> {
  const file = await workspace.look(path)
  if (file === undefined) return noPreview(`There is no ${path} in the workspace.`)
  // A file that is too large to read has a size and an age all the same.
  const text = await workspace.read(path).catch(() => '')
  const lines = text.replace(/\n$/, '').split('\n')
  const more = lines.length - FIRST_LINES
  return {
    kind: 'list',
    total: `${path}: ${size(file.bytes)}, last changed ${inWords(file.changedAt)}`,
    items: [
      ...lines.slice(0, FIRST_LINES),
      ...(more > 0 ? [`… ${more} more ${more === 1 ? 'line' : 'lines'}`] : []),
    ],
  }
}

export async function previewWrite(workspace: Workspace, path: string, content: string): Promise<Preview> {
  const exists = (await workspace.look(path)) !== undefined
  const before = exists ? await workspace.read(path) : ''
  return { kind: 'diff', name: exists ? path : `${path} (new file)`, before, after: content }
}

/** Both names, with what else says which file it is. */
export async function previewMove(workspace: Workspace, from: string, to: string): Promise<Preview> {
  const file = await workspace.look(from)
  if (file === undefined) return noPreview(`There is no ${from} in the workspace.`)
  if ((await workspace.look(to)) !== undefined)
    return noPreview(`${to} exists already, so nothing can be moved there.`)
  const total = `Moves a file of ${size(file.bytes)}`
  return { kind: 'table', total, columns: ['From', 'To'], rows: [[from, to]] }
}

export const previewMail = (mail: Mail): Preview => ({ kind: 'text', text: renderMail(mail) })

/** The sample files that would be written, and what is lost. */
export async function previewRestore(workspace: Workspace): Promise<Preview> {
  const changed = await changedSamples(workspace)
  const lost = changed.flatMap(({ now }) => (now === undefined ? [] : [Buffer.byteLength(now)]))
  const bytes = lost.reduce((sum, one) => sum + one, 0)
  return {
    kind: 'list',
    total: `${changed.length} files: ${lost.length} overwritten (${size(bytes)} lost), ${changed.length - lost.length} put back`,
    items: changed.map(({ path, now }) =>
      now === undefined ? `${path}: put back` : `${path}: overwritten, ${size(Buffer.byteLength(now))} lost`,
    ),
  }
}

const noPreview = (reason: string): Preview => ({ kind: 'none', reason })

/** Makes a change conditional on the approved preview. Files have no transactions, so a gap of one `await` remains. */
export async function unlessChanged(
  approved: Preview | undefined,
  now: () => Promise<Preview>,
): Promise<void> {
  // "No preview", for example of a file that is too large to read, is nothing to compare with.
  if (approved === undefined || approved.kind === 'none') return
  if (!sameJson(approved, await now()))
    throw new WorkspaceError('The files have just changed. Nothing was done.')
}

/** To the millisecond, so that every change is noticed. */
function inWords(time: Date): string {
  return time.toISOString().replace('T', ' ').replace('Z', ' UTC')
}
