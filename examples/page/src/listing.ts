import type { DemoTools } from './tools.js'

/** What `list_files` found. */
export type Listing = DemoTools['list_files']['output']

/** As many files are shown until the person asks for all. */
const CUT_AFTER = 50

/** The files to show, and how many are left out. */
export function shownFiles(
  { files }: Listing,
  isWhole: boolean,
): { shown: Listing['files']; hidden: number } {
  const shown = isWhole ? files : files.slice(0, CUT_AFTER)
  return { shown, hidden: files.length - shown.length }
}

/** The size in bytes, from 1000 on in kilobytes of 1000 bytes. */
export function sizeOf(bytes: number): string {
  if (bytes < 1000) return bytes === 1 ? '1 byte' : `${bytes} bytes`
  return `${(bytes / 1000).toLocaleString('en', { maximumFractionDigits: 1 })} KB`
}

/** When a file was last changed. */
export function ageOf(daysOld: number): string {
  if (daysOld === 0) return 'today'
  return daysOld === 1 ? 'yesterday' : `${daysOld} days ago`
}
