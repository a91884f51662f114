import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/** Starts a command with this process's environment; on Windows through the shell, because npm and pnpm are scripts there. */
export function start(command, args, options = {}) {
  return spawn(command, args, { shell: process.platform === 'win32', ...options })
}

/** Resolves to the exit status of a child; for a signal to 128 + its number, as in a shell. */
export function ended(child) {
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status, signal) => resolve(status ?? 128 + (constants.signals[signal] ?? 0)))
  })
}

/** Runs a command without output. Resolves to its exit status and everything it printed. */
export async function capture(command, args, options = {}) {
  const child = start(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk))
  const status = await ended(child)
  return { status, output: Buffer.concat(output).toString() }
}

/** The seconds since a `performance.now()` value, as text. */
export function since(began) {
  return `${((performance.now() - began) / 1000).toFixed(1)} s`
}

// The shells in between do not pass signals on, so a process and its children get a group of their own
const ownGroup = process.platform !== 'win32'

/** Runs a command to its end, in a group that gets every signal this process gets. Resolves to its exit status. */
export async function runGroup(command, args, options = {}) {
  const child = start(command, args, { stdio: 'inherit', detached: ownGroup, ...options })
  const pass = (signal) => {
    try {
      process.kill(ownGroup ? -child.pid : child.pid, signal)
    } catch (error) {
      if (error.code !== 'ESRCH') throw error // it has already ended
    }
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, pass)
  // when npm is terminated, it ends the shell that started this process but does not signal this process
  const parent = process.ppid
  const watch = setInterval(() => process.ppid !== parent && pass('SIGTERM'), 500)
  try {
    return await ended(child)
  } finally {
    clearInterval(watch)
    for (const signal of signals) process.off(signal, pass)
  }
}
