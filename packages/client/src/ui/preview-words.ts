import type { PreviewLine } from '../preview-view.js'

/** The sign in front of a line of a diff, and the same as a word for a screen reader. Empty for unchanged lines. */
export function signOf({ change }: PreviewLine): { readonly sign: string; readonly word: string } {
  switch (change) {
    case 'added':
      return { sign: '+', word: 'added: ' }
    case 'removed':
      return { sign: '−', word: 'removed: ' }
    case 'same':
    case 'skipped':
      return { sign: '', word: '' }
    default:
      return change satisfies never
  }
}

/** Why the preview is shown a second time. */
export const CHANGED = 'Changed since you looked. Nothing has run; what is new is marked.'

/** The mark of a line that is not in the other preview. */
export function markOfNew(isBefore: boolean): string {
  return isBefore ? 'gone' : 'new'
}
