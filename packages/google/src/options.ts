import type { GenerateContentConfig, GoogleGenAI, GoogleGenAIOptions } from '@google/genai'

/** What every request says beside the conversation, as the SDK words it. */
export type GoogleParams = Omit<GenerateContentConfig, 'systemInstruction' | 'abortSignal' | 'candidateCount'>

/** Options of {@link google}. */
export interface GoogleOptions {
  /** The provider's name for the model, such as `gemini-2.5-flash`. */
  readonly model: string
  /** A client of your own; `apiKey`, `baseURL` and `options` are then not looked at. */
  readonly client?: Pick<GoogleGenAI, 'models'> | undefined
  /** Default: `GEMINI_API_KEY` or `GOOGLE_API_KEY` of the environment. */
  readonly apiKey?: string | undefined
  /** Default: Google's own. */
  readonly baseURL?: string | undefined
  /** For the SDK's client: `enterprise`, `project`, `httpOptions` with `timeout` and `retryOptions`, and others. By default it does not retry. */
  readonly options?: Omit<GoogleGenAIOptions, 'apiKey'> | undefined
  /**
   * Such as `thinkingConfig`, `responseJsonSchema` for structured output, or `tools` that the provider runs itself (added to those of the
   * agent).
   */
  readonly params?: GoogleParams | undefined
  /** Whether the answer is streamed. Default: yes. */
  readonly stream?: boolean | undefined
}
