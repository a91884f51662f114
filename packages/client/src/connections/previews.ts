import { CountersignError, isRecord } from '@countersign/core'
import type { Connection } from './connection.js'
import { checkType, type FetchOptions, fetchResponse } from './fetch.js'

/**
 * A connection whose server also computes the preview of edited arguments, at a separate URL (`previewResponse` of
 * `@countersign/server`).
 *
 * @example withPreviews(fetchServerSentEvents('/api/chat'), '/api/preview')
 */
export function withPreviews(
  connection: Connection,
  url: string | URL,
  options: FetchOptions = {},
): Connection {
  return {
    ...connection,
    async previewEdits(edits, { headers }) {
      const response = await fetchResponse(url, options, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(edits),
      })
      checkType(url, response, 'application/json')
      const body: unknown = await response.json().catch(() => undefined)
      if (isRecord(body) && typeof body.proof === 'string')
        return { preview: body.preview, proof: body.proof }
      throw new CountersignError('empty-response', `"${url}" answered no preview. Check its URL.`)
    },
  }
}
