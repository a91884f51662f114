import { join, resolve } from 'node:path'
import {
  type Connection,
  type FetchOptions,
  fetchServerSentEvents,
  stream,
  withGrants,
} from '@countersign/client'
import { grantsResponse, previewResponse } from '@countersign/server'
import { demoAgent } from '../../server/src/agent.js'
import { fillOnce } from '../../server/src/samples.js'
import type { AgentPlace } from './options.js'

/** The connection to the agent, and a description of where it runs. */
export interface Reached {
  readonly connection: Connection
  readonly place: string
  /** Where it previews edited arguments. */
  readonly edits: { readonly url: string; readonly options?: FetchOptions }
}

/** Connects to an agent on a server, or starts the demo's in this process. */
export async function reach(place: AgentPlace): Promise<Reached> {
  switch (place.kind) {
    case 'server': {
      // Beside the chat, as in the demo: /api/chat, /api/grants, /api/preview.
      const beside = (name: string) => String(new URL(name, place.url))
      return {
        connection: withGrants(fetchServerSentEvents(place.url), beside('grants')),
        ...{ place: place.url, edits: { url: beside('preview') } },
      }
    }
    case 'here': {
      const workspace = resolve(place.folder ?? join(import.meta.dirname, '../../..', OWN_FOLDER))
      return { ...(await demoHere(workspace)), place: `the demo's planner (files: ${workspace})` }
    }
    default:
      return place satisfies never
  }
}

const OWN_FOLDER = '.countersign/terminal/workspace'

async function demoHere(workspace: string): Promise<Omit<Reached, 'place'>> {
  await fillOnce(workspace, Date.now())
  // outside the workspace, so that the tools cannot read the secret
  const agent = await demoAgent({ workspace, state: `${workspace}.countersign` })
  const context = { subject: 'single-user' }
  const connection = stream((input, { signal }) => agent.run(input, { signal, context }))
  // The routes of a server, without a network.
  const grants: FetchOptions = {
    fetch: (url, init) => grantsResponse(agent, new Request(url, init), { context }),
  }
  const options: FetchOptions = {
    fetch: (url, init) => previewResponse(agent, new Request(url, init), { context }),
  }
  const url = 'http://localhost'
  return { connection: withGrants(connection, url, grants), edits: { url, options } }
}
