import type { DemoTools } from './tools.js'

/** The output of `list_files`. */
export type Listing = DemoTools['list_files']['output']

/** How many files are shown until the user asks for all. */
const CUT_AFTER = 50

/** The files to show, and how many are left out. */
export function shownFiles(
  { files }: Listing,
  isWhole: boolean,
): { shown: Listing['files']; hidden: number } {
  const shown = isWhole ? files : files.slice(0, CUT_AFTER)
  return { shown, hidden: files.length - shown.length }
}

/** The size in bytes, or in kilobytes (1000 bytes) from 1000 on. */
export function sizeOf(bytes: number): string {
  if (bytes < 1000) return bytes === 1 ? '1 byte' : `${bytes} bytes`
  return `${(bytes / 1000).toLocaleString('en', { maximumFractionDigits: 1 })} KB`
}

export function ageOf(daysOld: number): string {
  if (daysOld === 0) return 'today'
  return daysOld === 1 ? 'yesterday' : `${daysOld} days ago`
}
