import type Anthropic from '@anthropic-ai/sdk'
import type { ClientOptions } from '@anthropic-ai/sdk'
import type { MessageCreateParamsBase as BetaParams } from '@anthropic-ai/sdk/resources/beta/messages/messages'
import type { MessageCreateParamsBase } from '@anthropic-ai/sdk/resources/messages/messages'

type Ours = 'model' | 'messages' | 'system' | 'stream'

/** What every request says beside the conversation, as the SDK words it. */
export type AnthropicParams = Partial<Omit<MessageCreateParamsBase, Ours>>

/** The same for the API's beta. */
export type AnthropicBetaParams = Partial<Omit<BetaParams, Ours>>

interface CommonOptions {
  /** The provider's name for the model, such as `claude-sonnet-4-6`. */
  readonly model: string
  /** A client of your own; `apiKey`, `baseURL` and `options` are then not looked at. */
  readonly client?: Pick<Anthropic, 'messages' | 'beta'> | undefined
  /** Default: `ANTHROPIC_API_KEY` of the environment. */
  readonly apiKey?: string | undefined
  /** Default: Anthropic's own. */
  readonly baseURL?: string | undefined
  /** For the SDK's client: `maxRetries`, `timeout`, `defaultHeaders` and others. It retries only before the first event. */
  readonly options?: Omit<ClientOptions, 'apiKey' | 'baseURL'> | undefined
  /** Whether the answer is streamed. Default: yes. */
  readonly stream?: boolean | undefined
}

/** Of the Messages API. */
export interface MessagesOptions extends CommonOptions {
  readonly beta?: false | undefined
  /**
   * Such as `thinking`, `output_config` for structured output, `cache_control`, or `tools` that the provider runs itself (added to those
   * of the agent). `max_tokens` is 8192 by default, and what thinking may use beside it.
   */
  readonly params?: AnthropicParams | undefined
}

/** Of the Messages API with features in beta, such as `mcp_servers`; `params.betas` names them. */
export interface BetaOptions extends CommonOptions {
  readonly beta: true
  readonly params?: (AnthropicBetaParams & { readonly betas?: string[] }) | undefined
}

/** Options of {@link anthropic}. */
export type AnthropicOptions = MessagesOptions | BetaOptions
