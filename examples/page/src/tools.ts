import { type InferTools, toolDefinition } from '@countersign/core'
import { z } from 'zod'
import { addresses } from './addresses.js'

const path = z.string().min(1).describe('Path of a file, relative to the workspace, with forward slashes')

export const listFiles = toolDefinition({
  name: 'list_files',
  description: 'Lists the files of a folder and of the folders in it, with size and age.',
  input: z.object({ folder: z.string().describe('Folder relative to the workspace; "" is all of it') }),
  output: z.object({
    folder: z.string(),
    files: z.array(z.object({ path: z.string(), bytes: z.number(), daysOld: z.number() })),
  }),
})

export const readFile = toolDefinition({
  name: 'read_file',
  description: 'Reads a text file.',
  input: z.object({ path }),
})

export const searchFiles = toolDefinition({
  name: 'search_files',
  description: 'Finds the lines that contain a text, in any case, in all files.',
  input: z.object({ text: z.string().min(1).describe('The text to look for') }),
})

export const writeFile = toolDefinition({
  name: 'write_file',
  description: 'Writes a text file and replaces one of that name.',
  input: z.object({ path, content: z.string().describe('The whole new content') }),
  needsApproval: true,
  allowEdits: true,
  scopes: ['once', 'session'],
  // A session approval covers only this one file.
  scopeKey: ({ path }) => path,
  message: ({ path, content }) =>
    `This writes ${content.length} characters to ${path}. A file of that name is replaced.`,
})

export const moveFile = toolDefinition({
  name: 'move_file',
  description: 'Moves or renames a file. Never replaces another.',
  input: z.object({ from: path, to: path }),
  needsApproval: true,
  scopes: ['once', 'session'],
  message: ({ from, to }) => `This moves ${from} to ${to}.`,
})

export const deleteFile = toolDefinition({
  name: 'delete_file',
  description: 'Deletes a file for good.',
  input: z.object({ path }),
  needsApproval: true,
  message: ({ path }) => `This deletes ${path} from the disk. It cannot be undone.`,
})

export const sendEmail = toolDefinition({
  name: 'send_email',
  description: 'Sends a mail: writes it as an .eml file into outbox/.',
  input: z.object({
    to: z
      .string()
      .refine((list) => addresses(list).length > 0, 'Give one or more mail addresses, separated by commas')
      .describe('One or more mail addresses, separated by commas'),
    subject: z.string().min(1).max(200),
    body: z.string().min(1),
  }),
  needsApproval: true,
  allowEdits: ['to', 'subject', 'body'],
  message: ({ to }) => `This sends a mail to ${to}. In this demo that is a file in outbox/.`,
})

export const restoreSamples = toolDefinition({
  name: 'restore_samples',
  description: 'Puts the sample files back as they were. Other files stay.',
  input: z.object({}),
  needsApproval: true,
  message:
    'This puts back every sample file that was moved, changed or deleted. Your changes to those files are lost.',
})

/** One cell of payments.csv. */
const cell = z.string().regex(/^[^,"\r\n]{1,80}$/, 'Up to 80 characters, without commas and quotation marks')

export const payInvoice = toolDefinition({
  name: 'pay_invoice',
  description: 'Pays an invoice: writes a line into payments.csv.',
  input: z.object({
    to: cell.describe('The name of the payee'),
    amount: z.number().positive().max(100_000).multipleOf(0.01),
    currency: z.enum(['EUR', 'USD']),
    reference: cell.describe('The number of the invoice'),
  }),
  needsApproval: true,
  message: ({ to, amount, currency }) =>
    `This pays ${amount} ${currency} to ${to}. In this demo that is a line in payments.csv.`,
})

/** The demo's tools, as both sides know them: the server implements them, and the page takes the types of their calls from here. */
export type DemoTools = InferTools<
  [
    typeof listFiles,
    typeof readFile,
    typeof searchFiles,
    typeof writeFile,
    typeof moveFile,
    typeof deleteFile,
    typeof sendEmail,
    typeof restoreSamples,
    typeof payInvoice,
  ]
>
