import type { ChatCompletion } from 'openai/resources/chat/completions'

/** A whole answer as the one chunk that would have told it. */
export function asChunks({ choices, ...about }: ChatCompletion): readonly unknown[] {
  return [{ ...about, choices: choices.map(({ message, ...choice }) => ({ ...choice, delta: message })) }]
}
