import { CountersignError, isCountersignError } from '@countersign/core'
import type { Connection } from './connection.js'
import { type FetchOptions, fetchResponse } from './fetch.js'

/**
 * Delivers answers into the open run by a POST of `{ threadId, runId, resume }`: with server-sent events, a live channel over plain
 * HTTP. For servers that keep a run open while a person decides (`live` and `answerResponse` of `@countersign/server`).
 *
 * What the server refuses (any 4xx) goes out after the run, as over any connection; after a 5xx or a connection that broke, nobody
 * knows, and the end of the run decides.
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
    },
  }
}

function isInDoubt(error: unknown): boolean {
  return isCountersignError(error) && error.code === 'http-status' && Number(error.data.status) >= 500
}

function inDoubt(url: string | URL, cause: unknown): CountersignError {
  const message = `[POST] "${url}": the server failed, and may or may not have the answer.`
  return new CountersignError('connection-failed', message, {}, cause)
}
