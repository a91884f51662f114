import type Anthropic from '@anthropic-ai/sdk'
import type { ClientOptions } from '@anthropic-ai/sdk'
import type { MessageCreateParamsBase as BetaParams } from '@anthropic-ai/sdk/resources/beta/messages/messages'
import type { MessageCreateParamsBase } from '@anthropic-ai/sdk/resources/messages/messages'

type Ours = 'model' | 'messages' | 'system' | 'stream'

/** Additional fields of every request, in the SDK's terms. */
export type AnthropicParams = Partial<Omit<MessageCreateParamsBase, Ours>>

/** The same for the beta API. */
export type AnthropicBetaParams = Partial<Omit<BetaParams, Ours>>

interface CommonOptions {
  /** The provider's name for the model, such as `claude-sonnet-4-6`. */
  readonly model: string
  /** An existing client; `apiKey`, `baseURL` and `options` are then ignored. */
  readonly client?: Pick<Anthropic, 'messages' | 'beta'> | undefined
  /** Default: the environment variable `ANTHROPIC_API_KEY`. */
  readonly apiKey?: string | undefined
  /** Default: Anthropic's own. */
  readonly baseURL?: string | undefined
  /** Options of the SDK's client: `maxRetries`, `timeout`, `defaultHeaders` and others. It retries only before the first event. */
  readonly options?: Omit<ClientOptions, 'apiKey' | 'baseURL'> | undefined
  /** Whether the reply is streamed. Default: yes. */
  readonly stream?: boolean | undefined
}

/** Options for the Messages API. */
export interface MessagesOptions extends CommonOptions {
  readonly beta?: false | undefined
  /**
   * For example `thinking`, `output_config.effort`, `cache_control`, or `tools` that the provider
   * runs itself (added to those of the agent). `max_tokens` is by default 8192 plus the budget for thinking.
   */
  readonly params?: AnthropicParams | undefined
}

/** Options for the Messages API with beta features, such as `mcp_servers`; `params.betas` lists them. */
export interface BetaOptions extends CommonOptions {
  readonly beta: true
  readonly params?: (AnthropicBetaParams & { readonly betas?: string[] }) | undefined
}

/** Options of {@link anthropic}. */
export type AnthropicOptions = MessagesOptions | BetaOptions
