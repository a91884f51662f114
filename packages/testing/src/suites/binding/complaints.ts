import { collectingRejections, takeRejections } from './rejections.js'

/** Collects the output of `console.error` and `console.warn`, uncaught errors and unhandled rejections while `work` runs. */
export async function collectComplaints(work: () => Promise<void>): Promise<readonly string[]> {
  const complaints: string[] = []
  const note = (...said: readonly unknown[]) => void complaints.push(said.map(words).join(' '))
  const { error, warn } = console
  const thrown = (event: ErrorEvent) => note(event.error ?? event.message)
  console.error = note
  console.warn = note
  window.addEventListener('error', thrown)
  try {
    await collectingRejections(async () => {
      await work()
      for (const rejected of await takeRejections()) note('unhandled rejection:', rejected)
    })
  } catch (failure) {
    // Earlier complaints often explain the failure.
    if (failure instanceof Error && complaints.length > 0) failure.message += `\n\n${complaints.join('\n')}`
    throw failure
  } finally {
    window.removeEventListener('error', thrown)
    console.error = error
    console.warn = warn
  }
  return complaints
}

function words(said: unknown): string {
  return said instanceof Error ? `${said.message}\n${said.stack}` : String(said)
}
