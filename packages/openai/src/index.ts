import { CountersignError } from '@countersign/core'
import type { Model, ModelEvent, ModelRequest } from '@countersign/server'
import { guardedEvents } from '@countersign/server/model-kit'
import OpenAI from 'openai'
import { chatEvents } from './chat/from-stream.js'
import { toChatRequest } from './chat/to-request.js'
import { asChunks } from './chat/whole.js'
import { fromSdkError } from './errors.js'
import type { ChatOptions, OpenAIOptions, ResponsesOptions } from './options.js'
import { responsesEvents } from './responses/from-stream.js'
import { toResponsesRequest } from './responses/to-request.js'
import { asStream } from './responses/whole.js'

export type { ChatOptions, ChatParams, OpenAIOptions, ResponsesOptions, ResponsesParams } from './options.js'

/**
 * A model of OpenAI, or of any server with a compatible API.
 *
 * @example
 * openai({ model: 'gpt-5' })
 * openai({ api: 'chat', provider: 'ollama', baseURL: 'http://localhost:11434/v1', apiKey: 'none', model: 'gpt-oss:20b' })
 *
 * @throws CountersignError `invalid-option`; from the stream `model-failed`, whose `data` is a `ModelFailure`.
 */
export function openai(options: OpenAIOptions): Model {
  const { provider = 'openai', model } = options
  if (model === '')
    throw new CountersignError('invalid-option', 'openai(): model is empty; name one, such as gpt-5.')
  if (provider === '' || provider.includes('/'))
    throw new CountersignError(
      'invalid-option',
      `openai(): provider ${JSON.stringify(provider)} must be a name without a slash.`,
    )
  const client = options.client ?? createClient(options)
  const answer =
    options.api === 'chat' ? chat(client, provider, options) : responses(client, provider, options)
  return {
    id: `${provider}/${model}`,
    stream: (request, { signal }) =>
      guardedEvents(provider, signal, answer(request, signal), (thrown) => fromSdkError(provider, thrown)),
  }
}

type Answer = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>

function createClient({ apiKey, baseURL, options }: OpenAIOptions): OpenAI {
  try {
    return new OpenAI({
      ...options,
      ...(apiKey !== undefined && { apiKey }),
      ...(baseURL !== undefined && { baseURL }),
    })
  } catch (error) {
    const way = 'give apiKey, or set OPENAI_API_KEY (a server that wants no key takes any)'
    throw new CountersignError('invalid-option', `openai(): the SDK made no client; ${way}.`, {}, error)
  }
}

function responses(client: OpenAI, provider: string, options: ResponsesOptions): Answer {
  return async function* (request, signal) {
    const body = toResponsesRequest(request, options)
    // An approval is sent only once: it is unknown whether the provider acted on a failed request.
    const sending = { signal, ...(answersProvider(body) && { maxRetries: 0 }) }
    const events =
      options.stream === false
        ? asStream(await client.responses.create({ ...body, stream: false }, sending))
        : await client.responses.create({ ...body, stream: true }, sending)
    yield* responsesEvents(provider, events)
  }
}

/** Whether the request lets the provider run a call. Denials are repeated in every later request, but run nothing. */
function answersProvider({ input }: ReturnType<typeof toResponsesRequest>): boolean {
  return Array.isArray(input) && input.some((item) => item.type === 'mcp_approval_response' && item.approve)
}

function chat(client: OpenAI, provider: string, options: ChatOptions): Answer {
  return async function* (request, signal) {
    const body = toChatRequest(request, options)
    const { completions } = client.chat
    const chunks =
      options.stream === false
        ? asChunks(await completions.create({ ...body, stream: false }, { signal }))
        : await completions.create({ ...body, stream: true, ...streamOptions(options) }, { signal })
    yield* chatEvents(provider, chunks)
  }
}

/** Servers of this API report usage only on request. `null` is for those that reject the option. */
function streamOptions({ params }: ChatOptions) {
  if (params?.stream_options === null) return {}
  return { stream_options: params?.stream_options ?? { include_usage: true } }
}
