import { handleChat, threadResponse } from '@countersign/server'
import type { APIEvent } from '@solidjs/start/server'
import { getAgent } from '~/server/agent'
import { userId } from '~/server/user'

export async function POST({ request }: APIEvent) {
  return handleChat(await getAgent(), request, { context: { subject: await userId() }, goOnFor: 60_000 })
}

async function read({ request }: APIEvent) {
  return threadResponse(await getAgent(), request, { context: { subject: await userId() } })
}

export const GET = read
export const PATCH = read
export const DELETE = read
