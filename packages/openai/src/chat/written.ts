import { isRecord } from '@countersign/core'
import { parseJson } from '@countersign/server/model-kit'

/** The arguments of a call while they are written. Reads each character once: they may come in thousands of pieces. */
export class WrittenArguments {
  text = ''
  #state: 'begun' | 'ended' | 'no object' = 'begun'
  #depth = 0
  #quote: 'none' | 'open' | 'escape' = 'none'

  add(piece: string): void {
    this.text += piece
    for (const character of piece) {
      if (this.#state === 'no object') return
      if (this.#quote === 'none') this.#read(character)
      else if (this.#quote === 'escape') this.#quote = 'open'
      else if (character === '"') this.#quote = 'none'
      else if (character === '\\') this.#quote = 'escape'
    }
  }

  /** Whether they are a complete JSON object. */
  get isObject(): boolean {
    if (this.#state === 'ended' && !isRecord(parseJson(this.text))) this.#state = 'no object'
    return this.#state === 'ended'
  }

  #read(character: string): void {
    if (this.#depth === 0 && !/\s/.test(character) && (this.#state === 'ended' || character !== '{'))
      this.#state = 'no object'
    else if (character === '"') this.#quote = 'open'
    else if (character === '{') this.#depth++
    else if (character === '}' && --this.#depth === 0) this.#state = 'ended'
  }
}
