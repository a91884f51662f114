import type { ChatClient } from '@countersign/client'
import { createTranscript } from './transcript.js'

/** Shows the conversation as it grows. Returns `write`, by which everything else comes between. */
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
