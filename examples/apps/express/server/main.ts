import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { toNodeHandler } from '@countersign/server/node'
import express, { type Request } from 'express'
import { agent } from './agent.js'
import { cookie, signIn, signOut, userOf } from './sessions.js'

const page = join(import.meta.dirname, '../page')
const app = express()

// Two users without passwords. A real application signs in with the authentication that it has.
app.get('/api/user', (request, response) => void response.json({ user: userOf(request) ?? null }))
app.post('/api/sign-in', express.json(), (request, response) => {
  const { user } = request.body ?? {}
  if (user !== 'Mara' && user !== 'Tom') return void response.sendStatus(403)
  response.cookie('session', signIn(user), cookie).sendStatus(204)
})
app.post('/api/sign-out', (request, response) => {
  signOut(request)
  response.clearCookie('session', cookie).sendStatus(204)
})

// Without a session, no request gets to the agent. The user owns the conversations, the approval requests and the runs.
app.all('/api/chat', (request, response, next) => {
  if (userOf(request) === undefined) response.sendStatus(401)
  else next()
})
app.all(
  '/api/chat',
  toNodeHandler<Request>(agent, { context: (request) => ({ subject: userOf(request) }), goOnFor: 60_000 }),
)

app.get('/', (_, response) => response.redirect(`/chat/${randomUUID()}`))
app.get('/chat/:threadId', (_, response) => response.sendFile(join(page, 'index.html')))
app.use(express.static(page))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')

process.once('SIGTERM', async () => {
  await agent.drain({ within: 20_000 })
  server.close(() => process.exit(0))
  setTimeout(() => server.closeAllConnections(), 2_000)
})
