import {
  type NodeRequest,
  toNodeAnswerHandler,
  toNodeGrantsHandler,
  toNodeHandler,
} from '@countersign/server/node'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { corsHeaders } from './origins.js'
import { GO_ON_FOR, type RouteParts } from './parts.js'

/** A request of node:http with its authenticated user. */
type Known = NodeRequest & { readonly user: string }

export function fastifyApp({ agent, sessions, origins, live }: RouteParts): FastifyInstance {
  const app = Fastify({ bodyLimit: 4 * 1024 * 1024 })

  app.addHook('onRequest', async (request, reply) => {
    for (const [name, value] of Object.entries(corsHeaders(request.headers.origin, origins)))
      reply.raw.setHeader(name, value)
    if (request.method === 'OPTIONS') return reply.code(204).send()
  })
  app.options('/api/*', async (_, reply) => reply.code(204).send())

  // Authentication comes before every route. The user is kept where no request can write.
  app.decorateRequest('user', '')
  app.addHook('onRequest', async (request, reply) => {
    const user = sessions.userOf(request.headers.authorization, request.headers.cookie)
    if (user === undefined) return reply.code(401).send()
    request.setDecorator('user', user)
  })

  const context = ({ user }: Known) => ({ subject: user })
  const chat = onNode(toNodeHandler<Known>(agent, { context, live, goOnFor: GO_ON_FOR }))
  app.post('/api/chat', chat)
  app.get('/api/chat', chat) // rejoins a run after a disconnect
  app.delete('/api/chat', chat) // stops one
  app.post('/api/chat/answers', onNode(toNodeAnswerHandler<Known>(agent, { context, origins })))
  app.route({
    method: ['GET', 'DELETE'],
    url: '/api/grants',
    handler: onNode(toNodeGrantsHandler<Known>(agent, { context, origins })),
  })
  return app
}

/** A node:http handler as a Fastify one: it writes the response itself, event by event, and gets the body as parsed by Fastify. */
function onNode(handle: (request: Known, response: FastifyReply['raw']) => Promise<void>) {
  return async (request: FastifyRequest, reply: FastifyReply) => {
    reply.hijack()
    const user = request.getDecorator<string>('user')
    await handle(Object.assign(request.raw, { body: request.body, user }), reply.raw)
  }
}
