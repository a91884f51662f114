/** Ctrl-C while a run is open. */
export interface Interrupt {
  /** Whether it came since the last time this was asked. */
  taken(): boolean
  dispose(): void
}

/** Calls `stop` at the first Ctrl-C; the second, which does not wait for what is under way, ends the process. */
export function onInterrupt(stop: () => void): Interrupt {
  let came = false
  const listener = () => {
    if (came) process.exit(130)
    came = true
    stop()
  }
  process.on('SIGINT', listener)
  return {
    taken() {
      const before = came
      came = false
      return before
    },
    dispose: () => void process.off('SIGINT', listener),
  }
}
