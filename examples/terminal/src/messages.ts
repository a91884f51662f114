import { createInterface } from 'node:readline'
import { prompt } from './prompt.js'

/** The user's next input. `quit`: the user wants to leave; `interrupted`: Ctrl-C. */
export type Said =
  | { readonly kind: 'message'; readonly text: string }
  /** `at`: its number in the list. */
  | { readonly kind: 'revoke'; readonly at: number }
  | { readonly kind: 'nothing' | 'retry' | 'standing' | 'quit' | 'interrupted' }

/** Parses a line as a message or as one of the commands. */
export function parseMessage(line: string): Said {
  const text = line.trim()
  if (text === '') return { kind: 'nothing' }
  if (text === '/retry') return { kind: 'retry' }
  if (text === '/standing') return { kind: 'standing' }
  const revoked = /^\/revoke (\d{1,3})$/.exec(text)?.[1]
  if (revoked !== undefined) return { kind: 'revoke', at: Number(revoked) }
  return text === '/quit' ? { kind: 'quit' } : { kind: 'message', text }
}

/** What the user types, prompt by prompt. Ends with Ctrl-D; `quit` and `interrupted` are for the caller to end on. */
export async function* typedMessages(): AsyncGenerator<Said> {
  for (;;) {
    const typed = await prompt('You (/quit or Ctrl-D ends)')
    if (typed.kind === 'ended') return
    if (typed.kind === 'interrupted') yield { kind: 'interrupted' }
    if (typed.kind === 'line') yield parseMessage(typed.text)
  }
}

/** The lines of an input that is not a terminal. */
export async function* pipedMessages(): AsyncGenerator<Said> {
  for await (const line of createInterface({ input: process.stdin })) yield parseMessage(line)
}

export async function* onlyMessage(text: string): AsyncGenerator<Said> {
  yield { kind: 'message', text }
}
