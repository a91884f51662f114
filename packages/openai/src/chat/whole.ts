import type { ChatCompletion } from 'openai/resources/chat/completions'

/** Converts a complete response to the equivalent single chunk. Some servers respond with an error instead, with status 200. */
export function asChunks({ choices, ...about }: Partial<ChatCompletion>): readonly unknown[] {
  return [{ ...about, choices: choices?.map(({ message, ...choice }) => ({ ...choice, delta: message })) }]
}
