import { join, resolve } from 'node:path'
import { type Connection, fetchServerSentEvents, stream } from '@countersign/client'
import { demoAgent } from '../../server/src/agent.js'
import { fillOnce } from '../../server/src/samples.js'
import type { AgentPlace } from './options.js'

/** The connection to the agent, and a description of where it runs. */
export interface Reached {
  readonly connection: Connection
  readonly place: string
}

/** Connects to an agent on a server, or starts the demo's in this process. */
export async function reach(place: AgentPlace): Promise<Reached> {
  switch (place.kind) {
    case 'server':
      return { connection: fetchServerSentEvents(place.url), place: place.url }
    case 'here': {
      const workspace = resolve(place.folder ?? join(import.meta.dirname, '../../..', OWN_FOLDER))
      return { connection: await demoHere(workspace), place: `the demo's planner (files: ${workspace})` }
    }
    default:
      return place satisfies never
  }
}

const OWN_FOLDER = '.countersign/terminal/workspace'

async function demoHere(workspace: string): Promise<Connection> {
  await fillOnce(workspace, Date.now())
  // outside the workspace, so that the tools cannot read the secret
  const agent = await demoAgent({ workspace, state: `${workspace}.countersign` })
  const context = { subject: 'single-user' }
  return stream((input, { signal }) => agent.run(input, { signal, context }))
}
