import { announce, keepFocus } from '@countersign/client/ui'
import { useChatClient } from '@countersign/solid'
import { createEffect, createSignal, onCleanup } from 'solid-js'

/** The live region: announces news in whole sentences. Keeps the focus in a card whose request closes. */
export function Announcer() {
  const [said, setSaid] = createSignal('')
  const client = useChatClient()
  createEffect(() => onCleanup(announce(client(), setSaid)))
  createEffect(() => onCleanup(keepFocus(client())))
  return (
    <div class="visually-hidden" role="status" aria-live="polite">
      {said()}
    </div>
  )
}
