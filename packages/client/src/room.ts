import type { DisplayLimits, DisplayText } from '@countersign/core'

/** The remaining limits, and the findings so far. */
export interface Room {
  /** Shows something within the remaining limits, and at most that share of the total. `beside`: its first line is already counted. */
  take(share: number, show: (limits: DisplayLimits) => DisplayText, beside?: 'beside'): DisplayText
  isFull(): boolean
  found(): { hidden: number; suspicious: boolean }
}

/** Shares the limits among the parts of what is shown, in the order in which they are taken. */
export function createRoom({ maxLength = Infinity, maxLines = Infinity, columns }: DisplayLimits): Room {
  let [length, lines, hidden] = [maxLength, maxLines, 0]
  let suspicious = false
  return {
    take(share, show, beside) {
      const free = beside ? 1 : 0
      const shown = show({
        maxLength: Math.min(length, Math.ceil(maxLength * share)),
        maxLines: Math.min(lines + free, Math.ceil(maxLines * share)),
        columns,
      })
      if (length < Infinity) length -= [...shown.text].length
      // An empty text occupies a line too.
      lines -= Math.max(1, shown.lines) - free
      hidden += shown.hidden
      suspicious ||= shown.suspicious
      return shown
    },
    isFull: () => length <= 0 || lines <= 0,
    found: () => ({ hidden, suspicious }),
  }
}
