'use client'

import { announce, keepFocus } from '@countersign/client/ui'
import { useChatClient } from '@countersign/react'
import { useEffect, useState } from 'react'

/** The live region: announces news in whole sentences. Keeps the focus in a card whose request closes. */
export function Announcer() {
  const [said, setSaid] = useState('')
  const client = useChatClient()
  useEffect(() => announce(client, setSaid), [client])
  useEffect(() => keepFocus(client), [client])
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {said}
    </div>
  )
}
