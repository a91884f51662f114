import Anthropic from '@anthropic-ai/sdk'
import type { MessageCreateParamsBase as BetaParams } from '@anthropic-ai/sdk/resources/beta/messages/messages'
import type { MessageCreateParamsBase } from '@anthropic-ai/sdk/resources/messages/messages'
import { CountersignError } from '@countersign/core'
import type { Model, ModelEvent, ModelRequest } from '@countersign/server'
import { guardedEvents } from '@countersign/server/model-kit'
import { fromSdkError, provider } from './errors.js'
import { messageEvents } from './from-stream.js'
import type { AnthropicOptions } from './options.js'
import { toRequest } from './to-request.js'
import { asStream } from './whole.js'

export type {
  AnthropicBetaParams,
  AnthropicOptions,
  AnthropicParams,
  BetaOptions,
  MessagesOptions,
} from './options.js'

/**
 * A model of Anthropic.
 *
 * @example
 * anthropic({ model: 'claude-sonnet-4-6', params: { thinking: { type: 'enabled', budget_tokens: 4096 } } })
 *
 * @throws CountersignError `invalid-option`; from the stream `model-failed`, whose `data` is a `ModelFailure`.
 */
export function anthropic(options: AnthropicOptions): Model {
  const { model } = options
  if (model === '') {
    throw new CountersignError(
      'invalid-option',
      'anthropic(): model is empty; name one, such as claude-sonnet-4-6.',
    )
  }
  const client = options.client ?? createClient(options)
  return {
    id: `${provider}/${model}`,
    stream: (request, { signal }) =>
      guardedEvents(provider, signal, answer(client, options, request, signal), fromSdkError),
  }
}

function createClient({ apiKey, baseURL, options }: AnthropicOptions): Anthropic {
  return new Anthropic({
    ...options,
    ...(apiKey !== undefined && { apiKey }),
    ...(baseURL !== undefined && { baseURL }),
  })
}

async function* answer(
  client: Pick<Anthropic, 'messages' | 'beta'>,
  options: AnthropicOptions,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent> {
  const body: unknown = toRequest(request, options)
  const whole = options.stream === false
  if (options.beta) {
    const { messages } = client.beta
    const asked = body as BetaParams
    yield* messageEvents(
      whole
        ? asStream(await messages.create({ ...asked, stream: false }, { signal }))
        : await messages.create({ ...asked, stream: true }, { signal }),
    )
    return
  }
  const asked = body as MessageCreateParamsBase
  yield* messageEvents(
    whole
      ? asStream(await client.messages.create({ ...asked, stream: false }, { signal }))
      : await client.messages.create({ ...asked, stream: true }, { signal }),
  )
}
