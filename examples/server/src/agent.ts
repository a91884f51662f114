import { join } from 'node:path'
import type { AnyServerTool } from '@countersign/core'
import { type Agent, createAgent, type Model } from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import * as sqlite from '@photostructure/sqlite'
import { demoPlanner } from './planner.js'
import { secretIn } from './secret.js'
import { demoTools } from './tools.js'

export interface DemoOptions {
  /** The folder that the tools work on. */
  workspace: string
  /** The folder for the ledger and the secret, out of the tools' reach. */
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

/** The demo's agent. Requests, answers and session approvals survive a restart: ledger and secret are files. */
export async function demoAgent({ workspace, state, model, tools = [], delay }: DemoOptions): Promise<Agent> {
  return createAgent({
    model: model ?? demoPlanner(delay === undefined ? {} : { delay }),
    tools: [...demoTools(workspace), ...tools],
    system,
    approvals: {
      ledger: await fileLedger(join(state, 'approvals.sqlite'), { sqlite }),
      secret: await secretIn(join(state, 'secret')),
    },
  })
}
