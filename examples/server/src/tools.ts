import { randomUUID } from 'node:crypto'
import type { AnyServerTool } from '@countersign/core'
import * as tools from '@countersign/example-page/tools'
import { putIntoOutbox } from './mail.js'
import { restoreSamples } from './samples.js'
import { openWorkspace, type Workspace } from './workspace.js'

/** The tools of the demo. Reading needs no approval; changing a file or sending something out of the chat does. */
export function demoTools(root: string): AnyServerTool[] {
  const workspace = openWorkspace(root)
  return [
    ...readingTools(workspace),
    ...changingTools(workspace),
    tools.restoreSamples.server(async () => ({ restored: await restoreSamples(root, Date.now()) })),
  ]
}

function readingTools(workspace: Workspace): AnyServerTool[] {
  return [
    tools.listFiles.server(async ({ folder }) => ({ folder, files: await workspace.list(folder) })),
    tools.readFile.server(async ({ path }) => ({ path, content: await workspace.read(path) })),
    tools.searchFiles.server(async ({ text }) => ({ text, hits: await workspace.search(text) })),
  ]
}

function changingTools(workspace: Workspace): AnyServerTool[] {
  return [
    tools.writeFile.server(async ({ path, content }) => ({
      path,
      bytes: Buffer.byteLength(content),
      ...(await workspace.write(path, content)),
    })),
    tools.moveFile.server(async ({ from, to }) => {
      await workspace.move(from, to)
      return { from, to }
    }),
    tools.deleteFile.server(async ({ path }) => ({ path, ...(await workspace.delete(path)) })),
    tools.sendEmail.server((mail) => putIntoOutbox(workspace, mail, new Date(), randomUUID())),
  ]
}
