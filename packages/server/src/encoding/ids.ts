import { encodeBase64url } from './bytes.js'

/** A prefix and 128 random bits as 22 characters of base64url. */
export function randomId(prefix: string): string {
  return prefix + encodeBase64url(globalThis.crypto.getRandomValues(new Uint8Array(16)))
}

const MOST_TRIES = 100

/** Returns `wanted` or, if that is taken, another id made of it. `mayReplace`: an id that may be taken. */
export type NewId = (wanted?: string, mayReplace?: (id: string) => boolean) => string

/**
 * The ids of the messages of one run: none that is taken, and none twice, whatever the generator of an application returns. A message with
 * the id of a stored one would replace that.
 */
export function newIds(generateId: () => string, isTaken: (id: string) => boolean): NewId {
  const given = new Set<string>()
  return (wanted = generateId(), mayReplace = () => false) => {
    const another = (suffix: string) =>
      isId(`${wanted}-${suffix}`) ? `${wanted}-${suffix}` : randomId('msg_')
    let id = wanted
    for (let n = 2; (isTaken(id) || given.has(id)) && !mayReplace(id); n++)
      id = another(n > MOST_TRIES ? randomId('') : `${n}`)
    given.add(id)
    return id
  }
}

/**
 * Ids of an application's generator, if it has one. Random ones replace those that no request may have: a message that has one could not be
 * sent again, nor a request answered.
 */
export function usableIds(generateId: (() => unknown) | undefined, prefix: string): () => string {
  return () => {
    const id = generateId?.()
    return isId(id) ? id : randomId(prefix)
  }
}

const ID = /^[^\p{Cc}\p{Cs}]+$/u

/** Whether a value may be an id in a request: text of 1 to 256 characters, no control characters, no unpaired surrogate. */
export function isId(value: unknown, most = 256): value is string {
  return typeof value === 'string' && value.length <= most && ID.test(value)
}

/** The part of a run's key (`runKey`) that names whose run it is: kind and id of its holder. Empty for a key of another form. */
export function holderOfRun(key: string): string {
  let end = 0
  for (let part = 0; part < 2; part++) {
    const [prefix, length] = /^(\d+):/.exec(key.slice(end, end + 16)) ?? []
    if (prefix === undefined) return ''
    end += prefix.length + Number(length)
  }
  return key.slice(0, end)
}

/** The same, for shares: sockets without a user cost little to open, so that all of them are one owner (''). */
export function ownerOfRun(key: string): string {
  const holder = holderOfRun(key)
  return holder.startsWith('6:socket') ? '' : holder
}
