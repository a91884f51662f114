import { CountersignError, isCountersignError } from '@countersign/core'
import type { Damage } from './record-text.js'

const damages: Record<Damage, string> = {
  'not-json': 'it is no JSON',
  'wrong-form': 'it has not the form of a record',
  'not-migrated': 'it is of an older version and `migrate` made no record of it',
}

export function corrupt(threadId: string, movedTo: string, damage: Damage, cause: unknown): CountersignError {
  const message =
    `What is stored of this thread cannot be read: ${damages[damage]}. It was moved, unchanged, to the key that \`data.movedTo\` names, ` +
    'and the thread starts anew. Rescue what you need from there; `remove(threadId)` deletes it.'
  return new CountersignError('persistence-corrupt', message, { threadId, movedTo, reason: damage }, cause)
}

/** For the application's own storage, in which damaged data cannot be moved aside. */
export function noRecord(threadId: string, { version }: { readonly version?: unknown }): CountersignError {
  if (typeof version === 'number' && version > 1) return newerVersion(threadId, version)
  const message =
    'What `load` gave is no ThreadRecord. Nothing of it was restored, it is left as it is, and the conversation is not kept meanwhile. ' +
    'Repair what is stored, or `remove(threadId)`, and reload.'
  return new CountersignError('persistence-corrupt', message, { threadId, reason: 'wrong-form' })
}

export function newerVersion(threadId: string, version: number): CountersignError {
  const message =
    `What is stored of this thread was written by a newer version of this package (form ${version}) and is left as it is; the conversation ` +
    'is not kept meanwhile. Reload the page to get the newer version, or `remove(threadId)` to start anew.'
  return new CountersignError('persistence-unavailable', message, { threadId, version })
}

export function missing(storage: string): CountersignError {
  const message = `There is no ${storage} here, so the conversation is not kept. Use this persistence in a browser whose user allows storage.`
  return new CountersignError('persistence-unavailable', message)
}

/** Converts an error of a storage. `instead` suggests another place for data that does not fit, as the end of a sentence. */
export function storageFailure(error: unknown, threadId: string, instead: string): CountersignError {
  if (isCountersignError(error)) return error
  if (isQuotaError(error)) {
    const message =
      'The storage is full: nothing was written and what was stored before still stands. Make room with `remove(threadId)` of threads ' +
      `that are over${instead}.`
    return new CountersignError('persistence-full', message, { threadId }, error)
  }
  const message =
    'The storage cannot be used, so the conversation is not kept; `cause` has the reason. Often the browser blocks it: a private ' +
    'window, a frame of another site, a setting.'
  return new CountersignError('persistence-unavailable', message, { threadId }, error)
}

export function tooSlow(timeout: number): CountersignError {
  const message =
    `The storage did not answer within ${timeout} ms, so the conversation is not kept meanwhile; what is stored was left as it is. ` +
    'Reload to try again, or give `persistent` a longer `timeout`.'
  return new CountersignError('persistence-unavailable', message, { timeout })
}

/** For a conversation of a server: nothing of it is lost. */
export function loadsLate(timeout: number): CountersignError {
  const message = `The conversation did not load within ${timeout} ms. It is shown once it has; what is said meanwhile is kept.`
  return new CountersignError('persistence-unavailable', message, { timeout })
}

export function worksElsewhere(): CountersignError {
  const message =
    'Another page works on this conversation: a run or a tool is under way there, or a message is queued. Finish that there, or close it; then try again.'
  return new CountersignError('thread-busy', message)
}

export function loadsNothing(): CountersignError {
  const message = 'The conversation could not be loaded, so nothing was started. Try again.'
  return new CountersignError('persistence-unavailable', message)
}

function isQuotaError(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('name' in error)) return false
  return error.name === 'QuotaExceededError' || error.name === 'NS_ERROR_DOM_QUOTA_REACHED'
}
