import { handleChat, threadResponse } from '@countersign/server'
import { getAgent } from '@/server/agent'
import { userId } from '@/server/user'

export async function POST(request: Request) {
  return handleChat(await getAgent(), request, { context: { subject: await userId() }, goOnFor: 60_000 })
}

async function read(request: Request) {
  return threadResponse(await getAgent(), request, { context: { subject: await userId() } })
}

export const GET = read
export const PATCH = read
export const DELETE = read
