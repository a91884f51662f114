import { CountersignError, isCountersignError } from '@countersign/core'
import type { Connection } from './connection.js'
import { checkType, type Endpoint, type FetchOptions, fetchResponse } from './fetch.js'

/**
 * Delivers answers into the open run by a POST of `{ threadId, runId, resume }`. With server-sent events, this is a live channel
 * over plain HTTP. For servers that keep a run open while the user decides (`live` and `answerResponse` of `@countersign/server`).
 *
 * The server confirms with a 2xx and JSON, or without content. Answers that the run rejects (409) are sent after it, as over any
 * connection. After a 429, a 5xx or a broken connection, the delivery is unknown: they are sent again while the run is open, and
 * its end decides. Any other response (401, a sign-in page) ends the run with its error, and `retry()` sends them in a new one.
 *
 * @example const connection = { ...fetchServerSentEvents('/api/chat'), ...postAnswers('/api/chat/answers') }
 */
export function postAnswers(
  url: Endpoint,
  options: FetchOptions = {},
): { readonly answer: NonNullable<Connection['answer']> } {
  return {
    async answer(answers, { signal, headers }) {
      const request = {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: answers,
        signal,
      }
      const response = await fetchResponse(url, options, request).catch((error: unknown) => {
        throw isInDoubt(error) ? inDoubt(error) : error
      })
      await response.body?.cancel()
      if (response.headers.has('content-type')) checkType(url, response, 'application/json')
    },
  }
}

function isInDoubt(error: unknown): error is CountersignError {
  if (!isCountersignError(error) || error.code !== 'http-status') return false
  const status = Number(error.data.status)
  return status === 429 || status >= 500
}

function inDoubt(cause: CountersignError): CountersignError {
  const message = `The server failed or is busy, and may or may not have the answer. ${cause.message}`
  return new CountersignError('connection-failed', message, {}, cause)
}
