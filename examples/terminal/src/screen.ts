import type { ChatClient } from '@countersign/client'
import { createTranscript } from './transcript.js'

/** Prints the conversation as it grows. Returns `write`, for all other output. */
export function showOn(output: NodeJS.WritableStream, client: ChatClient): (text: string) => void {
  const transcript = createTranscript()
  const show = () => output.write(transcript.next(client.getSnapshot()))
  client.subscribe(show)
  return (text) => {
    show()
    output.write(text)
    transcript.interrupted()
  }
}
