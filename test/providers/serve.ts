import { onTestFinished } from 'vitest'
import { type Recording, serveRecordings } from './server.mjs'

/** Serves recordings, one a request, until the test is over. */
export async function serve(...recordings: readonly Recording[]) {
  const server = await serveRecordings(recordings)
  onTestFinished(server.close)
  return server
}
