import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { type Agent, toolDefinition } from '@countersign/server'
import { z } from 'zod'
import { serveFetch } from './fetch-server.js'
import { openAgent, type Serve } from './our-agent.js'

/** Our server behind a route for clients of the AI SDK. */
const serveAiSdk: Serve = async (agent, onRequest) => {
  const url = await serveFetch(async (request) => {
    if (request.method === 'POST') onRequest(JSON.parse(await request.clone().text()))
    return answer(agent, request)
  })
  return `${url}/api/chat`
}

function answer(agent: Agent, request: Request): Promise<Response> {
  return handleAiSdkChat(agent, request, { context: { subject: 'person-1' } })
}

/** An AI SDK client does not name its tools in a request: its routes define them. */
const locateTool = toolDefinition({
  name: 'get_location',
  description: 'Where the person is.',
  input: z.object({}),
}).client(() => null)

export const openAiSdkAgent = () => openAgent(serveAiSdk, [locateTool])
