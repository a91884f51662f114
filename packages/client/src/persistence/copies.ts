/**
 * A message that was not sent and whose version is left is kept as a copy with an id of its own: if it has arrived after all, it is on the
 * version that is left, and the copy can still be sent. The id tells of what it is a copy, so that another page of this browser, which may
 * still show the original, does not send that as well.
 */
const copy = /~copy(\d+)$/

export function nextCopyOf(id: string): string {
  return `${originalOf(id)}~copy${countOf(id) + 1}`
}

export function isCopy(id: string): boolean {
  return copy.test(id)
}

export function originalOf(id: string): string {
  return id.replace(copy, '')
}

/** Without each message of which there is a later copy. */
export function lastCopies<T extends { readonly id: string }>(messages: readonly T[]): T[] {
  const last = new Map<string, number>()
  for (const { id } of messages)
    last.set(originalOf(id), Math.max(last.get(originalOf(id)) ?? 0, countOf(id)))
  return messages.filter(({ id }) => countOf(id) === last.get(originalOf(id)))
}

function countOf(id: string): number {
  return Number(copy.exec(id)?.[1] ?? 0)
}
