import type OpenAI from 'openai'
import type { ClientOptions } from 'openai'
import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions'
import type { ResponseCreateParams } from 'openai/resources/responses/responses'

/** Additional fields of every request, in the SDK's terms. */
export type ResponsesParams = Partial<
  Omit<
    ResponseCreateParams,
    | 'model'
    | 'input'
    | 'instructions'
    | 'stream'
    | 'background'
    // The engine sends the whole conversation each time.
    | 'previous_response_id'
    | 'conversation'
  >
>

/** The same for Chat Completions. */
export type ChatParams = Partial<Omit<ChatCompletionCreateParams, 'model' | 'messages' | 'stream' | 'n'>>

interface CommonOptions {
  /** The provider's name for the model, such as `gpt-5`. */
  readonly model: string
  /** An existing client; `apiKey`, `baseURL` and `options` are then ignored. */
  readonly client?: OpenAI | undefined
  /** Default: the environment variable `OPENAI_API_KEY`. Servers that need no key accept any. */
  readonly apiKey?: string | undefined
  /** The URL of a compatible server, such as `http://localhost:11434/v1`. Default: OpenAI's own. */
  readonly baseURL?: string | undefined
  /** Options of the SDK's client: `maxRetries`, `timeout`, `defaultHeaders` and others. It retries only before the first event. */
  readonly options?: Omit<ClientOptions, 'apiKey' | 'baseURL'> | undefined
  /**
   * The provider's name: the first part of the model's id. Provider data (ids, signatures) is sent back only
   * to a model with the same provider name, so give each server its own. Default: `openai`.
   */
  readonly provider?: string | undefined
  /** Whether the reply is streamed. Default: yes. */
  readonly stream?: boolean | undefined
}

/** Options for the Responses API. */
export interface ResponsesOptions extends CommonOptions {
  readonly api?: 'responses' | undefined
  /**
   * For example `reasoning`, or `tools` that the provider runs itself (added to those of
   * the agent). With `store: false`, include `reasoning.encrypted_content` in `include`: other reasoning cannot be sent back.
   */
  readonly params?: ResponsesParams | undefined
}

/** Options for the Chat Completions API, which most compatible servers support. */
export interface ChatOptions extends CommonOptions {
  readonly api: 'chat'
  /**
   * For example `reasoning_effort`. Use `stream_options: null` for a server that rejects this field. `response_format` replaces the one that
   * is made of the agent's `output`, for a server that has no `json_schema`.
   */
  readonly params?: ChatParams | undefined
}

/** Options of {@link openai}. */
export type OpenAIOptions = ResponsesOptions | ChatOptions
