const told = new Set<string>()

/** Warns of what concerns the whole process, once in it: agents may be made anew for each request. */
export function warnOnce(warn: (message: string) => void, message: string): void {
  if (told.has(message)) return
  told.add(message)
  warn(message)
}
