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
