/** Ctrl-C while a run is open. */
export interface Interrupt {
  /** Whether it was pressed since the last call. */
  taken(): boolean
  dispose(): void
}

/** Calls `stop` on the first Ctrl-C. The second one ends the process at once. */
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
