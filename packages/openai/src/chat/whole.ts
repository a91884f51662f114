import type { ChatCompletion } from 'openai/resources/chat/completions'

/** A whole answer as the one chunk that would have told it. Some servers answer with an error in its place, and status 200. */
export function asChunks({ choices, ...about }: Partial<ChatCompletion>): readonly unknown[] {
  return [{ ...about, choices: choices?.map(({ message, ...choice }) => ({ ...choice, delta: message })) }]
}
