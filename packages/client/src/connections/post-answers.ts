import { CountersignError, isCountersignError } from '@countersign/core'
import type { Connection } from './connection.js'
import { checkType, type FetchOptions, fetchResponse } from './fetch.js'

/**
 * Delivers answers into the open run by a POST of `{ threadId, runId, resume }`: with server-sent events, a live channel over plain
 * HTTP. For servers that keep a run open while a person decides (`live` and `answerResponse` of `@countersign/server`).
 *
 * The server says that it has them with a 2xx and JSON, or without content. What the run will not take (409) goes out after it, as over
 * any connection. After a 429, a 5xx or a connection that broke, nobody knows: it is sent again while the run is open, and the end of the
 * run decides. Any other reply (401, the page of a sign-in) ends the run with its error, and `retry()` sends the answers with a new one.
 *
 * @example const connection = { ...fetchServerSentEvents('/api/chat'), ...postAnswers('/api/chat/answers') }
 */
export function postAnswers(
  url: string | URL,
  options: FetchOptions = {},
): { readonly answer: NonNullable<Connection['answer']> } {
  return {
    async answer(answers, { signal, headers }) {
      const request = {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(answers),
        signal,
      }
      const response = await fetchResponse(url, options, request).catch((error: unknown) => {
        throw isInDoubt(error) ? inDoubt(url, error) : error
      })
      await response.body?.cancel()
      if (response.headers.has('content-type')) checkType(url, response, 'application/json')
    },
  }
}

function isInDoubt(error: unknown): boolean {
  if (!isCountersignError(error) || error.code !== 'http-status') return false
  const status = Number(error.data.status)
  return status === 429 || status >= 500
}

function inDoubt(url: string | URL, cause: unknown): CountersignError {
  const message = `[POST] "${url}": the server failed or is busy, and may or may not have the answer.`
  return new CountersignError('connection-failed', message, {}, cause)
}
