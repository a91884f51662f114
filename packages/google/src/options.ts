import type { GenerateContentConfig, GoogleGenAI, GoogleGenAIOptions } from '@google/genai'

/** Additional fields of every request, in the SDK's terms. */
export type GoogleParams = Omit<GenerateContentConfig, 'systemInstruction' | 'abortSignal' | 'candidateCount'>

/** Options of {@link google}. */
export interface GoogleOptions {
  /** The provider's name for the model, such as `gemini-2.5-flash`. */
  readonly model: string
  /** An existing client; `apiKey`, `baseURL` and `options` are then ignored. */
  readonly client?: Pick<GoogleGenAI, 'models'> | undefined
  /** Default: the environment variable `GEMINI_API_KEY` or `GOOGLE_API_KEY`. */
  readonly apiKey?: string | undefined
  /** Default: Google's own. */
  readonly baseURL?: string | undefined
  /** Options of the SDK's client: `enterprise`, `project`, `httpOptions` with `timeout`, `retryOptions` (default: no retry), and others. */
  readonly options?: Omit<GoogleGenAIOptions, 'apiKey'> | undefined
  /**
   * For example `thinkingConfig`, or `tools` that the provider runs itself (added to those of the agent).
   */
  readonly params?: GoogleParams | undefined
  /** Whether the reply is streamed. Default: yes. */
  readonly stream?: boolean | undefined
}
