import { answerResponse, grantsResponse, handleChat, rejoinResponse } from '@countersign/server'
import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { createMiddleware } from 'hono/factory'
import { GO_ON_FOR, type RouteParts } from './parts.js'

interface Env {
  Variables: { user: string }
}

/** The routes for Hono, on any runtime. */
export function honoApp({ agent, sessions, origins, live }: RouteParts): Hono<Env> {
  const app = new Hono<Env>()

  app.use('/api/*', cors({ origin: [...origins], credentials: true }))

  // Authentication comes before every route. The user is kept where no request can write.
  const requireUser = createMiddleware<Env>(async (c, next) => {
    const user = sessions.userOf(c.req.header('authorization'), c.req.header('cookie'))
    if (user === undefined) return c.body(null, 401)
    c.set('user', user)
    await next()
  })
  app.use('/api/*', requireUser)

  app.post('/api/chat', (c) =>
    handleChat(agent, c.req.raw, { context: { subject: c.var.user }, live, goOnFor: GO_ON_FOR }),
  )
  // rejoins a run after a disconnect, and stops one
  app.on(['GET', 'DELETE'], '/api/chat', (c) =>
    rejoinResponse(agent, c.req.raw, { context: { subject: c.var.user } }),
  )
  app.post('/api/chat/answers', (c) =>
    answerResponse(agent, c.req.raw, { context: { subject: c.var.user }, origins }),
  )
  app.on(['GET', 'DELETE'], '/api/grants', (c) =>
    grantsResponse(agent, c.req.raw, { context: { subject: c.var.user }, origins }),
  )
  return app
}
