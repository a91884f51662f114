import { join } from 'node:path'
import { type Agent, createAgent } from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import { demoPlanner } from './planner.js'
import { secretIn } from './secret.js'
import { demoTools } from './tools.js'

export interface DemoOptions {
  /** The folder that the tools work on. */
  workspace: string
  /** The folder that keeps the ledger and the secret, out of the tools' reach. */
  state: string
  /** The pause between two words in milliseconds. */
  delay?: number | undefined
}

/** The demo's agent. What was asked, answered and granted outlives a restart: the ledger is a file, and its secret lies beside it. */
export async function demoAgent({ workspace, state, delay }: DemoOptions): Promise<Agent> {
  return createAgent({
    model: demoPlanner(delay === undefined ? {} : { delay }),
    tools: demoTools(workspace),
    approvals: {
      ledger: await fileLedger(join(state, 'approvals.sqlite')),
      secret: await secretIn(join(state, 'secret')),
    },
  })
}
