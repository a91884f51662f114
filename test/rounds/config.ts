/** What a server of the rounds is started with. */
export interface RoundsConfig {
  /** The log that all processes append to. */
  readonly log: string
  /** The page's script. */
  readonly page: string
  /** The URL of the database, and the prefix of its tables. */
  readonly postgres: string
  readonly prefix: string
  /** Milliseconds after which what a dead process held is free. */
  readonly lease: number
  /** Words of each reply of the model. */
  readonly words: number
  /** Milliseconds between two of them. */
  readonly pace: number
}

/** The words of one reply: numbered, so that a missing one and a repeated one show. */
export function wordsOf(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${name.replaceAll(' ', '-')}.${at} `)
}
