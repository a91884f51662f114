import type { ChatSnapshot, CountersignError } from '@countersign/core'

/** A failure in words for the user. */
export interface FailureWords {
  readonly title: string
  readonly text: string
}

/** What the notice above the composer says; undefined if nothing is wrong. */
export interface Notice extends FailureWords {
  /** Whether the user can do something about it: retry. */
  readonly isFailure: boolean
}

const words = (title: string, text: string): FailureWords => ({ title, text })

const lost: Notice = {
  ...words('The connection was lost', 'Reconnecting. The reply continues on its own.'),
  isFailure: false,
}
const offline: Notice = { ...lost, text: 'You are offline. The reply goes on once you are online again.' }

/** The last failure, until something runs, or that the page reconnects. */
export function noticeOf({ status, error, isLoading }: ChatSnapshot): Notice | undefined {
  if (status === 'reconnecting') return navigator.onLine ? lost : offline
  return error && !isLoading ? { ...failureWords(error), isFailure: true } : undefined
}

/** What a failure means for the user, and what helps. Nothing that was written is lost, whatever failed. */
export function failureWords(error: CountersignError): FailureWords {
  switch (error.code) {
    case 'connection-failed':
      return navigator.onLine
        ? words('The server could not be reached', 'What you wrote is kept. Try again in a moment.')
        : words('You are offline', 'What you wrote is kept. Try again once you are online.')
    case 'http-status':
      return refusal(Number(error.data.status), String(error.data.body))
    case 'truncated-stream':
      return words('The reply was cut off', 'What has arrived is shown. Retry continues it.')
    case 'persistence-unavailable':
      return words('This chat could not be loaded or saved', error.message)
    case 'run-error':
    case 'model-failed':
      return words('The server could not finish the reply', error.message)
    case 'too-many-continuations':
      return words('Stopped: too many runs without your input', error.message)
    default:
      return words('Something went wrong', error.message)
  }
}

/** `body`: the server's code and message as JSON, or anything else. */
function refusal(status: number, body: string): FailureWords {
  switch (status) {
    case 401:
      return words('You are signed out', 'Sign in again, then retry. What you wrote is kept.')
    case 403:
      return words('You may not do this', 'The server does not allow it for your account.')
    case 404:
      return words('The server does not have this chat', 'It may have been deleted. Start a new chat.')
    case 409:
      return words('Another reply is being written in this chat', 'Wait for its end, then retry.')
    case 413:
      return words('This is too much to send at once', 'Send a shorter message.')
    case 507:
      if (body.includes('"store"'))
        return words('The server has no room at the moment', 'What you wrote is kept. Try again later.')
      return body.includes('maxThreadsPerOwner')
        ? words('You have too many chats', 'Delete one, then retry. What you wrote is kept.')
        : words('This chat is full', 'What you wrote is kept. Start a new chat.')
    case 408:
    case 429:
      return words('The server is busy', 'Wait a moment, then retry.')
    case 502:
    case 503:
    case 504:
      return words('The server is not available right now', 'What you wrote is kept. Try again in a moment.')
    default:
      return status >= 500
        ? words('Something went wrong on the server', 'What you wrote is kept. Try again.')
        : words('The server refused the request', 'What you wrote is kept. Try again.')
  }
}
