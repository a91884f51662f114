import { type EditedPreview, isCountersignError, sameJson, type ToolCallPart } from '@countersign/core'
import type { ChatClient } from '../client.js'
import { previewEdits } from '../connections/previews.js'
import { type PreviewView, previewView } from '../preview-view.js'
import type { Edited } from './edit-draft.js'
import type { EditSettings } from './edit-fit.js'
import { limitsOf } from './request-view.js'
import { heldWords } from './words.js'

/** What the server said about edited arguments. It counts only as long as they are not edited further. */
export type EditPreview =
  | { readonly status: 'none' }
  | { readonly status: 'loading'; readonly input: unknown }
  | { readonly status: 'shown'; readonly input: unknown; readonly edited: EditedPreview }
  | { readonly status: 'failed'; readonly input: unknown; readonly problem: string }

/** Nothing was asked yet. */
export const NO_PREVIEW: EditPreview = { status: 'none' }

/** What the button of the edit form does next. */
export interface EditStep {
  readonly action: 'approve' | 'preview'
  readonly label: string
  readonly disabled: boolean
  /** What the edited arguments would do. */
  readonly view: PreviewView | undefined
  /** Why there is no preview, or why nothing can be approved yet. */
  readonly note: string | undefined
  /** There are changes, perhaps invalid ones. */
  readonly canUndo: boolean
  /** To pass on with the approval. */
  readonly preview: EditedPreview | undefined
}

/** Changed arguments are approved only after their preview was shown, all of it. */
export function editStep(
  { approval }: ToolCallPart,
  edited: Edited,
  preview: EditPreview,
  expanded: boolean,
  { previewUrl }: EditSettings,
): EditStep {
  const canUndo = !edited.ok || edited.changed
  const step = { view: undefined, note: undefined, preview: undefined, disabled: false, canUndo }
  if (edited.ok && !edited.changed) return { ...step, action: 'approve', label: 'Approve unchanged' }
  const approve = { ...step, action: 'approve', label: 'Approve with changes' } as const
  if (approval?.preview === undefined || previewUrl === undefined) return approve
  const ask = { ...step, action: 'preview', label: 'Preview the changes' } as const
  if (!edited.ok || preview.status === 'none' || !sameJson(preview.input, edited.input)) return ask
  switch (preview.status) {
    case 'loading':
      return { ...ask, label: 'Loading the preview…', disabled: true }
    case 'failed':
      return { ...ask, note: preview.problem }
    case 'shown': {
      const view = previewView(preview.edited.preview, limitsOf(expanded))
      const held = view.hidden > 0
      const note = held ? heldWords(view.hidden) : undefined
      return { ...approve, view, note, disabled: held, preview: preview.edited }
    }
    default:
      return preview satisfies never
  }
}

/** Asks the server what edited arguments would do, and reports each state. */
export async function loadPreview(
  client: Pick<ChatClient, 'threadId' | 'getSnapshot'>,
  { previewUrl }: EditSettings,
  { approval }: ToolCallPart,
  input: unknown,
  become: (preview: EditPreview) => void,
): Promise<void> {
  if (approval === undefined || previewUrl === undefined) return
  become({ status: 'loading', input })
  const loaded = await previewEdits(previewUrl, client, { id: approval.id, input }).then(
    (edited): EditPreview => ({ status: 'shown', input, edited }),
    (error: unknown): EditPreview => ({ status: 'failed', input, problem: problemOf(error) }),
  )
  become(loaded)
}

/** The server's own words, if it has refused the edits. */
function problemOf(error: unknown): string {
  try {
    const { body } = isCountersignError(error) ? error.data : {}
    return `The changed arguments were not accepted. ${JSON.parse(String(body)).error.message}`
  } catch {
    return 'The preview could not be loaded. Try again.'
  }
}
