import { CountersignError } from '@countersign/core'
import type { Model, ModelEvent, ModelRequest } from '@countersign/server'
import { guardedEvents } from '@countersign/server/model-kit'
import { GoogleGenAI } from '@google/genai'
import { fromSdkError, provider } from './errors.js'
import { framedFetch } from './framed-fetch.js'
import { contentEvents } from './from-stream.js'
import type { GoogleOptions } from './options.js'
import { toRequest } from './to-request.js'

export type { GoogleOptions, GoogleParams } from './options.js'

/**
 * A model of Google, over the Gemini API or Vertex AI.
 *
 * @example
 * google({ model: 'gemini-2.5-flash', params: { thinkingConfig: { includeThoughts: true } } })
 *
 * @throws CountersignError `invalid-option`; from the stream `model-failed`, whose `data` is a `ModelFailure`.
 */
export function google(options: GoogleOptions): Model {
  const { model } = options
  if (model === '') {
    throw new CountersignError(
      'invalid-option',
      'google(): model is empty; name one, such as gemini-2.5-flash.',
    )
  }
  const client = options.client ?? createClient(options)
  return {
    id: `${provider}/${model}`,
    stream: (request, { signal }) =>
      guardedEvents(provider, signal, answer(client, options, request, signal), fromSdkError),
  }
}

function createClient({ apiKey, baseURL, options = {} }: GoogleOptions): GoogleGenAI {
  const { httpOptions = {} } = options
  return new GoogleGenAI({
    ...options,
    ...(apiKey !== undefined && { apiKey }),
    httpOptions: {
      ...httpOptions,
      ...(baseURL !== undefined && { baseUrl: baseURL }),
      fetch: framedFetch(httpOptions.fetch),
    },
  })
}

async function* answer(
  client: Pick<GoogleGenAI, 'models'>,
  options: GoogleOptions,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent> {
  // Aborted when the consumer stops reading: the SDK itself would not close the request.
  const closing = new AbortController()
  const close = () => closing.abort(signal.reason)
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()
  const asked = toRequest(request, options, closing.signal)
  try {
    yield* contentEvents(
      options.stream === false
        ? [await client.models.generateContent(asked)]
        : await client.models.generateContentStream(asked),
    )
  } finally {
    signal.removeEventListener('abort', close)
    closing.abort()
  }
}
