import { handleChat, threadResponse } from '@countersign/server'

export default defineEventHandler(async (event) => {
  const agent = await getAgent()
  const context = { subject: await userId(event) }
  const request = toWebRequest(event)
  return request.method === 'POST'
    ? handleChat(agent, request, { context, goOnFor: 60_000 })
    : threadResponse(agent, request, { context })
})
