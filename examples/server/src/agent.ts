import { join } from 'node:path'
import type { AnyServerTool } from '@countersign/core'
import { type Agent, createAgent, type Model } from '@countersign/server'
import { sqlLedger, sqlRunLog, sqlThreads } from '@countersign/sql'
import { openDatabase } from './database.js'
import { demoPlanner } from './planner.js'
import { secretIn } from './secret.js'
import { demoTools } from './tools.js'

export interface DemoOptions {
  /** The folder that the tools work on. */
  workspace: string
  /** The folder for the database and the secret, out of the tools' reach. */
  state: string
  /** Default: the embedded planner. */
  model?: Model | undefined
  /** Tools besides the demo's own, such as those of an MCP server. */
  tools?: readonly AnyServerTool[] | undefined
  /** The planner's pause between two words in milliseconds. */
  delay?: number | undefined
}

/** What a language model has to know. The planner ignores it. */
const system = `You work on the files of one folder, by the tools you have. Paths are relative to that folder.
Tools that change a file or send a mail wait for the user's approval: call them, and do not ask for permission in words.
If the user denies a call, do not make it again; say what was not done. Answer briefly, in plain text or simple Markdown.`

/**
 * How long (ms) a run of a process that was killed holds its conversation. It is short because the demo is one process, which its user
 * stops and starts again.
 */
const LEASE_MS = 5000

/** The demo's agent. Conversations, open requests and session approvals survive a restart: they are in a file, as is the secret. */
export async function demoAgent({ workspace, state, model, tools = [], delay }: DemoOptions): Promise<Agent> {
  const connection = await openDatabase(join(state, 'demo.sqlite'))
  // The clock of this process, as for the approvals: the database's own would be the same.
  const now = () => Date.now()
  return createAgent({
    model: model ?? demoPlanner(delay === undefined ? {} : { delay }),
    tools: [...demoTools(workspace), ...tools],
    system,
    threads: sqlThreads(connection, { now }),
    runLog: sqlRunLog(connection, { lease: LEASE_MS }),
    approvals: {
      ledger: sqlLedger(connection, { now }),
      lease: LEASE_MS,
      secret: await secretIn(join(state, 'secret')),
    },
  })
}
