import { tool } from '@countersign/server'
import * as z from 'zod'

/** What the tools work on. */
export type Files = Map<string, string>

/** Always needs approval. */
export function deleteFile(files: Files) {
  return tool({
    name: 'delete_file',
    description: 'Deletes a file',
    input: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => ({ deleted: files.delete(path) }),
  })
}

/**
 * Depends on its arguments: reading below /etc/ needs approval, any other file does not. These files are a map, in which
 * a path has one spelling. On a disk, where `..` and links give it many, list what may run without approval instead.
 */
export function readFile(files: Files) {
  return tool({
    name: 'read_file',
    description: 'Reads a file',
    input: z.object({ path: z.string() }),
    needsApproval: ({ path }) => path.startsWith('/etc/'),
    execute: ({ path }) => files.get(path) ?? 'There is no such file.',
  })
}

/** How much a user may send without approval; a service of the application. */
export interface Limits {
  limitOf(subject: unknown): Promise<number>
}

/** Asks a service of the run first. If the service fails or is missing, the call needs approval: a failure never lets a call run. */
export const sendMoney = tool({
  name: 'send_money',
  description: 'Sends an amount to somebody',
  input: z.object({ to: z.string(), amount: z.number().positive() }),
  needsApproval: async ({ amount }, { context }) =>
    amount > (await limitsOf(context).limitOf(context.subject)),
  execute: ({ to, amount }) => ({ sent: amount, to }),
})

function limitsOf({ limits }: Readonly<Record<string, unknown>>): Limits {
  if (isLimits(limits)) return limits
  throw new Error('This run has no limits: give agent.run a context with them.')
}

function isLimits(value: unknown): value is Limits {
  return typeof value === 'object' && value !== null && 'limitOf' in value
}

/** Streams: the page sees each hit as it is found, and the model gets all of them at the end. */
export function searchFiles(files: Files) {
  return tool({
    name: 'search_files',
    description: 'Finds the files that hold a word',
    input: z.object({ word: z.string() }),
    async *execute({ word }, { signal }) {
      for (const [path, text] of files) {
        if (signal.aborted) return
        if (text.includes(word)) yield path
      }
    },
    finalize: (hits) => ({ hits }),
  })
}
