import { type ChatSnapshot, displayText, type TextPart, type UIMessage } from '@countersign/core'
import { renderCall } from './call-card.js'

/** What is on the screen of a conversation. It only grows: a terminal cannot unprint. */
export interface Transcript {
  /** What is new since the last call, as text to print. */
  next(snapshot: Pick<ChatSnapshot, 'messages' | 'isLoading'>): string
  /** Something else was printed, up to the end of a line. */
  interrupted(): void
}

/** Starts with nothing printed. The cost grows with what is new and with the number of messages, not with their length. */
export function createTranscript(): Transcript {
  const seen = new Map<string, UIMessage>()
  /** How much of each text is printed. */
  const written = new Map<string, number>()
  const endedCalls = new Set<string>()
  let insideLine = false

  function add(text: string): string {
    if (text !== '') insideLine = !text.endsWith('\n')
    return text
  }
  const onNewLine = (text: string) => add(`${insideLine ? '\n' : ''}${text}`)

  function nextText({ text }: TextPart, key: string, growing: boolean): string {
    const from = written.get(key) ?? 0
    const to = growing ? characterEnd(text, from) : text.length
    if (to <= from) return ''
    written.set(key, to)
    const shown = displayText(text.slice(from, to)).text
    return from === 0 ? onNewLine(shown) : add(shown)
  }

  function nextOf(message: UIMessage, growing: boolean): string {
    const last = message.parts.length - 1
    return message.parts
      .map((part, at) => {
        if (part.type === 'text') return nextText(part, `${message.id}/${at}`, growing && at === last)
        if (part.type !== 'tool-call' || endedCalls.has(part.id)) return ''
        const card = renderCall(part)
        if (card === undefined) return ''
        endedCalls.add(part.id)
        return onNewLine(card)
      })
      .join('')
  }

  return {
    next({ messages, isLoading }) {
      const newest = messages.at(-1)
      const news = messages.map((message) => {
        if (message.role === 'user' || (message !== newest && seen.get(message.id) === message)) return ''
        seen.set(message.id, message)
        return nextOf(message, isLoading && message === newest)
      })
      return news.join('') + (!isLoading && insideLine ? add('\n') : '')
    },
    interrupted() {
      insideLine = false
    },
  }
}

/** The last character may be incomplete (half a surrogate pair, or an emoji of several), so it waits for more text. */
function characterEnd(text: string, from: number): number {
  const rest = text.slice(from).replace(/[\uD800-\uDBFF]$/, '')
  return from + (new Intl.Segmenter().segment(rest).containing(rest.length - 1)?.index ?? 0)
}
