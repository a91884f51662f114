import type { Key } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { isCancel, text } from '@clack/prompts'
import type { Typed } from './answer.js'

/** Asks the user for a line. Also resolves if the user leaves the prompt without one. */
export async function prompt(message: string): Promise<Typed> {
  const closed = new AbortController()
  let left: Exclude<Typed['kind'], 'line'> = 'escaped'
  const onKey = (_: string | undefined, key: Key) => {
    if (key.ctrl && key.name === 'c') left = 'interrupted'
    if (key.ctrl && key.name === 'd') end()
  }
  const end = () => {
    left = 'ended'
    closed.abort()
  }
  // before the prompt's own listener, so that it is known why the prompt closes
  process.stdin.prependListener('keypress', onKey).once('end', end)
  try {
    const typed = await text({ message, signal: closed.signal })
    return isCancel(typed) ? { kind: left } : { kind: 'line', text: typed }
  } finally {
    process.stdin.off('keypress', onKey).off('end', end)
  }
}

/** Discards what was typed before the request was shown: it cannot be an answer to it. */
export async function dropTypedAhead(): Promise<void> {
  const { stdin } = process
  const drop = () => {}
  stdin.setRawMode(true)
  // a listener alone does not resume an input that the last prompt has paused
  stdin.on('data', drop).resume()
  await pause(30)
  stdin.off('data', drop)
}
