import { randomUUID } from 'node:crypto'
import type { AnyServerTool } from '@countersign/core'
import { tool } from '@countersign/server'
import { z } from 'zod'
import { addresses, putIntoOutbox } from './mail.js'
import { restoreSamples } from './samples.js'
import { openWorkspace, type Workspace } from './workspace.js'

const path = z.string().min(1).describe('Path of a file, relative to the workspace, with forward slashes')

/** The tools of the demo. Reading runs freely; whatever changes a file or leaves the conversation needs a person's yes. */
export function demoTools(root: string): AnyServerTool[] {
  const workspace = openWorkspace(root)
  return [...readingTools(workspace), ...changingTools(workspace), restoreTool(root)]
}

function readingTools(workspace: Workspace): AnyServerTool[] {
  return [
    tool({
      name: 'list_files',
      description: 'Lists the files of a folder and of the folders in it, with size and age.',
      input: z.object({ folder: z.string().describe('Folder relative to the workspace; "" is all of it') }),
      execute: async ({ folder }) => ({ folder, files: await workspace.list(folder) }),
    }),
    tool({
      name: 'read_file',
      description: 'Reads a text file.',
      input: z.object({ path }),
      execute: async ({ path }) => ({ path, content: await workspace.read(path) }),
    }),
    tool({
      name: 'search_files',
      description: 'Finds the lines that contain a text, in any case, in all files.',
      input: z.object({ text: z.string().min(1).describe('The text to look for') }),
      execute: async ({ text }) => ({ text, hits: await workspace.search(text) }),
    }),
  ]
}

function changingTools(workspace: Workspace): AnyServerTool[] {
  return [
    tool({
      name: 'write_file',
      description: 'Writes a text file and replaces one of that name.',
      input: z.object({ path, content: z.string().describe('The whole new content') }),
      needsApproval: true,
      allowEdits: true,
      message: ({ path, content }) =>
        `This writes ${content.length} characters to ${path}. A file of that name is replaced.`,
      execute: async ({ path, content }) => ({
        path,
        bytes: Buffer.byteLength(content),
        ...(await workspace.write(path, content)),
      }),
    }),
    tool({
      name: 'move_file',
      description: 'Moves or renames a file. Never replaces another.',
      input: z.object({ from: path, to: path }),
      needsApproval: true,
      scopes: ['once', 'session'],
      message: ({ from, to }) => `This moves ${from} to ${to}.`,
      execute: async ({ from, to }) => {
        await workspace.move(from, to)
        return { from, to }
      },
    }),
    tool({
      name: 'delete_file',
      description: 'Deletes a file for good.',
      input: z.object({ path }),
      needsApproval: true,
      message: ({ path }) => `This deletes ${path} from the disk. It cannot be undone.`,
      execute: async ({ path }) => ({ path, ...(await workspace.delete(path)) }),
    }),
    tool({
      name: 'send_email',
      description: 'Sends a mail: writes it as an .eml file into outbox/.',
      input: z.object({
        to: z
          .string()
          .refine(
            (list) => addresses(list).length > 0,
            'Give one or more mail addresses, separated by commas',
          )
          .describe('One or more mail addresses, separated by commas'),
        subject: z.string().min(1).max(200),
        body: z.string().min(1),
      }),
      needsApproval: true,
      allowEdits: ['to', 'subject', 'body'],
      message: ({ to }) => `This sends a mail to ${to}. In this demo that is a file in outbox/.`,
      execute: (mail) => putIntoOutbox(workspace, mail, new Date(), randomUUID()),
    }),
  ]
}

function restoreTool(root: string): AnyServerTool {
  return tool({
    name: 'restore_samples',
    description: 'Puts the sample files back as they were. Other files stay.',
    input: z.object({}),
    needsApproval: true,
    message:
      'This puts back every sample file that was moved, changed or deleted. Your changes to those files are lost.',
    execute: async () => ({ restored: await restoreSamples(root, Date.now()) }),
  })
}
