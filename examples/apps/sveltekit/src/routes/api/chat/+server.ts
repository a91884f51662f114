import { handleChat, threadResponse } from '@countersign/server'
import type { RequestHandler } from '@sveltejs/kit'
import { getAgent } from '$lib/server/agent'

export const POST: RequestHandler = async ({ request, locals }) =>
  handleChat(await getAgent(), request, { context: { subject: locals.user }, goOnFor: 60_000 })

const read: RequestHandler = async ({ request, locals }) =>
  threadResponse(await getAgent(), request, { context: { subject: locals.user } })

export const GET = read
export const PATCH = read
export const DELETE = read
