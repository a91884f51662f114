import { announce } from '@countersign/example-page/announce'
import { client } from '@countersign/example-page/chat'
import { createSignal, onCleanup } from 'solid-js'

/** The live region: announces news in whole sentences. */
export function Announcer() {
  const [said, setSaid] = createSignal('')
  onCleanup(announce(client, setSaid))
  return (
    <div class="visually-hidden" role="status" aria-live="polite">
      {said()}
    </div>
  )
}
