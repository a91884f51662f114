const told = new Set<string>()

/** Logs a warning that concerns the whole process only once: agents may be created per request. */
export function warnOnce(warn: (message: string) => void, message: string): void {
  if (told.has(message)) return
  told.add(message)
  warn(message)
}
