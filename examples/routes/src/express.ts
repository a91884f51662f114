import { toNodeAnswerHandler, toNodeGrantsHandler, toNodeHandler } from '@countersign/server/node'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import { corsHeaders } from './origins.js'
import { GO_ON_FOR, type RouteParts } from './parts.js'

/** A request with its authenticated user. */
type Known = Request & { user?: string }

export function expressApp({ agent, sessions, origins, live }: RouteParts): Express {
  const app = express()

  app.use('/api', (request, response, next) => {
    response.set(corsHeaders(request.get('origin'), origins))
    if (request.method === 'OPTIONS') response.sendStatus(204)
    else next()
  })

  // Authentication comes before every route. The user is kept where no request can write.
  app.use('/api', (request: Known, response: Response, next: NextFunction) => {
    const user = sessions.userOf(request.get('authorization'), request.get('cookie'))
    if (user === undefined) return response.sendStatus(401)
    request.user = user
    next()
  })

  // The owner of runs, approval requests and session approvals.
  const context = ({ user }: Known) => ({ subject: user })

  const chat = toNodeHandler(agent, { context, live, goOnFor: GO_ON_FOR })
  app.post('/api/chat', chat)
  app.get('/api/chat', chat) // rejoins a run after a disconnect
  app.delete('/api/chat', chat) // stops one
  app.post('/api/chat/answers', toNodeAnswerHandler(agent, { context, origins }))
  app.all('/api/grants', toNodeGrantsHandler(agent, { context, origins }))
  return app
}
