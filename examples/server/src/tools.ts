import { randomUUID } from 'node:crypto'
import type { AnyServerTool, MandateOffer, ServerTool } from '@countersign/core'
import * as tools from '@countersign/example-page/tools'
import type { ZodType } from 'zod'
import { type Mail, putIntoOutbox } from './mail.js'
import { pay, paymentMandates, previewPayment } from './payments.js'
import {
  previewDelete,
  previewMail,
  previewMove,
  previewRestore,
  previewWrite,
  unlessChanged,
} from './previews.js'
import { restoreSamples } from './samples.js'
import { openWorkspace, type Workspace } from './workspace.js'

/** The tools of the demo. Reading needs no approval; changing a file or sending something out of the chat does. */
export function demoTools(root: string): AnyServerTool[] {
  const workspace = openWorkspace(root)
  return [
    ...readingTools(workspace),
    ...changingTools(workspace),
    ...sendingTools(workspace),
    withTerms(
      tools.restoreSamples.server(async (_, { preview }) => {
        await unlessChanged(preview, () => previewRestore(workspace))
        return { restored: await restoreSamples(root, Date.now()) }
      }),
      { preview: () => previewRestore(workspace) },
    ),
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
    withTerms(
      tools.writeFile.server(async ({ path, content }, { preview }) => {
        await unlessChanged(preview, () => previewWrite(workspace, path, content))
        return { path, bytes: Buffer.byteLength(content), ...(await workspace.write(path, content)) }
      }),
      { preview: ({ path, content }) => previewWrite(workspace, path, content) },
    ),
    withTerms(
      tools.moveFile.server(async ({ from, to }, { preview }) => {
        await unlessChanged(preview, () => previewMove(workspace, from, to))
        await workspace.move(from, to)
        return { from, to }
      }),
      { preview: ({ from, to }) => previewMove(workspace, from, to) },
    ),
    withTerms(
      tools.deleteFile.server(async ({ path }, { preview }) => {
        await unlessChanged(preview, () => previewDelete(workspace, path))
        return { path, ...(await workspace.delete(path)) }
      }),
      { preview: ({ path }) => previewDelete(workspace, path) },
    ),
  ]
}

function sendingTools(workspace: Workspace): AnyServerTool[] {
  return [
    withTerms(
      tools.sendEmail.server((mail) => putIntoOutbox(workspace, mail, new Date(), randomUUID())),
      { preview: previewMail, mandates: (mail) => mailMandates(mail, new Date()) },
    ),
    withTerms(
      tools.payInvoice.server(async (payment, { preview }) => {
        await unlessChanged(preview, () => previewPayment(workspace, payment))
        return pay(workspace, payment, new Date())
      }),
      { preview: (payment) => previewPayment(workspace, payment), mandates: paymentMandates },
    ),
  ]
}

/** Adds what only the server knows to a tool that the page describes too. */
function withTerms<Name extends string, Schema extends ZodType, Output>(
  tool: ServerTool<Name, Schema, Output>,
  terms: Pick<ServerTool<Name, Schema, Output>, 'preview' | 'mandates'>,
): ServerTool<Name, Schema, Output> {
  return { ...tool, ...terms }
}

const TEAM = 'team@example.org'

/** Only mail to the team can be approved beforehand. */
function mailMandates({ to }: Mail, now: Date): MandateOffer[] {
  if (to !== TEAM) return []
  const midnight = new Date(now).setHours(24, 0, 0, 0)
  const label = 'Mail to the team, ten times, until tonight'
  const expiresIn = Math.ceil((midnight - now.getTime()) / 1000)
  return [{ id: 'team', label, where: [{ field: 'to', is: TEAM }], uses: 10, expiresIn }]
}
