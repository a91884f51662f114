import { Hono } from 'hono'
import type { Env } from './chats'
import html from './index.html'
import script from './main.js.txt'

export { Chats } from './chats'

const app = new Hono<{ Bindings: Env }>()

/** Who sends a request: this comes from your own authentication. A program with one user uses a fixed name. */
const userId = async (_: Request) => 'single-user'

app.all('/api/chat', async (c) => {
  const user = await userId(c.req.raw)
  return c.env.CHATS.getByName(user).chat(c.req.raw, user)
})

// A new conversation. Its id is in the address, so that the conversation can be opened again.
app.get('/', (c) => c.redirect(`/chat/${crypto.randomUUID()}`))
app.get('/chat/:threadId', (c) => c.html(html))
app.get('/main.js', (c) => c.body(script, 200, { 'content-type': 'text/javascript' }))

export default app
