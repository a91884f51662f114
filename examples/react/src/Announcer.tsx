import { announce } from '@countersign/example-page/announce'
import { client } from '@countersign/example-page/chat'
import { useEffect, useState } from 'react'

/** The live region: announces news in whole sentences. */
export function Announcer() {
  const [said, setSaid] = useState('')
  useEffect(() => announce(client, setSaid), [])
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {said}
    </div>
  )
}
