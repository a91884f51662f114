import { anthropicMessages } from './anthropic.mjs'
import { geminiGenerate } from './google.mjs'
import { openaiChat, openaiResponses } from './openai.mjs'

/**
 * How each protocol of the recordings is spoken: `model(origin, { stream, id })` makes the adapter's model for a server at `origin`,
 * `kindOf` and `refine` (both optional) say in the provider's words what the shared facts cannot know.
 */
export const protocols = {
  'openai-responses': openaiResponses,
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  'gemini-generate': geminiGenerate,
}

/**
 * Those that `model.test.ts` and `gated.test.ts` try, which need besides: a `name`; the `line` of acceptance (OpenAI 55, Anthropic 57,
 * Google 59); `say({ text?, calls?: [{ id, name, arguments }], stream? })`, a recording (`body`, `contentType`) in which the provider says
 * this, a text of two deltas at least; `asks: true` where the provider itself asks before it runs tools.
 */
export const adapters = [openaiResponses, openaiChat, anthropicMessages, geminiGenerate]
