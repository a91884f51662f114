import type OpenAI from 'openai'
import type { ClientOptions } from 'openai'
import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions'
import type { ResponseCreateParams } from 'openai/resources/responses/responses'

/** What every request says beside the conversation, as the SDK words it. */
export type ResponsesParams = Partial<
  Omit<
    ResponseCreateParams,
    | 'model'
    | 'input'
    | 'instructions'
    | 'stream'
    | 'background'
    // the engine sends the whole conversation each time
    | 'previous_response_id'
    | 'conversation'
  >
>

/** The same for Chat Completions. */
export type ChatParams = Partial<Omit<ChatCompletionCreateParams, 'model' | 'messages' | 'stream' | 'n'>>

interface CommonOptions {
  /** The provider's name for the model, such as `gpt-5`. */
  readonly model: string
  /** A client of your own; `apiKey`, `baseURL` and `options` are then not looked at. */
  readonly client?: OpenAI | undefined
  /** Default: `OPENAI_API_KEY` of the environment. Servers that want no key take any. */
  readonly apiKey?: string | undefined
  /** Of a compatible server, such as `http://localhost:11434/v1`. Default: OpenAI's own. */
  readonly baseURL?: string | undefined
  /** For the SDK's client: `maxRetries`, `timeout`, `defaultHeaders` and others. It retries only before the first event. */
  readonly options?: Omit<ClientOptions, 'apiKey' | 'baseURL'> | undefined
  /**
   * Whose model it is: the first part of the model's id. What a provider wants back (ids, signatures) is only sent to a model of the same
   * name, so name each server. Default: `openai`.
   */
  readonly provider?: string | undefined
  /** Whether the answer is streamed. Default: yes. */
  readonly stream?: boolean | undefined
}

/** Of the Responses API. */
export interface ResponsesOptions extends CommonOptions {
  readonly api?: 'responses' | undefined
  /**
   * Such as `reasoning`, `text.format` for structured output, or `tools` that the provider runs itself (added to those of the agent).
   * With `store: false`, `include` should name `reasoning.encrypted_content`: reasoning without it cannot be sent back.
   */
  readonly params?: ResponsesParams | undefined
}

/** Of the Chat Completions API, which most compatible servers speak. */
export interface ChatOptions extends CommonOptions {
  readonly api: 'chat'
  /** Such as `response_format` for structured output. `stream_options: null` for a server that does not know them. */
  readonly params?: ChatParams | undefined
}

/** Options of {@link openai}. */
export type OpenAIOptions = ResponsesOptions | ChatOptions
