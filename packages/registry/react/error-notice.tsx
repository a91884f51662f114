'use client'

import { focusComposer, noticeOf } from '@countersign/client/ui'
import { useChatClient, useChatSelector } from '@countersign/react'

/** Explains a failed request and offers a retry, or says that the page reconnects. The conversation before it is kept. */
export function ErrorNotice() {
  const notice = useChatSelector(noticeOf)
  const { retry } = useChatClient()
  if (!notice) return null
  const { title, text, isFailure } = notice
  return (
    <div className="error-notice" role={isFailure ? 'alert' : 'status'}>
      <p className="error-title">{title}</p>
      <p className="error-message">{text}</p>
      {isFailure && (
        <button
          type="button"
          className="button"
          onClick={() => {
            focusComposer()
            void retry()
          }}
        >
          Retry
        </button>
      )}
    </div>
  )
}
