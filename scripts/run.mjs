import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/** Starts a command with this process's environment; on Windows by its shell, because npm and pnpm are scripts there. */
export function start(command, args, options = {}) {
  return spawn(command, args, { shell: process.platform === 'win32', ...options })
}

/** Resolves with the exit status of a child, a signal counted as shells count it (128 + its number). */
export function ended(child) {
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status, signal) => resolve(status ?? 128 + (constants.signals[signal] ?? 0)))
  })
}

/** Runs a command quietly. Resolves with its exit status and everything that it printed. */
export async function capture(command, args, options = {}) {
  const child = start(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk))
  const status = await ended(child)
  return { status, output: Buffer.concat(output).toString() }
}

/** Seconds since a moment of `performance.now()`, for people. */
export function since(began) {
  return `${((performance.now() - began) / 1000).toFixed(1)} s`
}

// A process that starts others in a group of their own, since the shells between them pass no signal on
const ownGroup = process.platform !== 'win32'

/** Runs a command to its end, as a group that gets every signal that this process gets. Resolves with its exit status. */
export async function runGroup(command, args, options = {}) {
  const child = start(command, args, { stdio: 'inherit', detached: ownGroup, ...options })
  const pass = (signal) => {
    try {
      process.kill(ownGroup ? -child.pid : child.pid, signal)
    } catch (error) {
      if (error.code !== 'ESRCH') throw error // it has ended by itself
    }
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, pass)
  // npm, told to end, ends the shell that started this process, and nobody tells this process
  const parent = process.ppid
  const watch = setInterval(() => process.ppid !== parent && pass('SIGTERM'), 500)
  try {
    return await ended(child)
  } finally {
    clearInterval(watch)
    for (const signal of signals) process.off(signal, pass)
  }
}
