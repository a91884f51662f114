'use client'

import { copyText } from '@countersign/client/ui'
import { useState } from 'react'

/** Copies a text, and says how that went. */
export function CopyButton({ label, text }: { label: string; text: string }) {
  const [words, setWords] = useState(label)
  return (
    <button
      type="button"
      className="button link copy"
      aria-live="polite"
      onClick={() => void copyText(text, label, setWords)}
    >
      {words}
    </button>
  )
}
