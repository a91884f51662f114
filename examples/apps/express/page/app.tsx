import { useEffect, useState } from 'react'
import { Chat } from './chat'

const threadId = location.pathname.split('/').at(-1) ?? ''

const post = (url: string, body = {}) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

export function App() {
  const [user, setUser] = useState<string | null>()
  useEffect(() => {
    fetch('/api/user')
      .then((response) => response.json())
      .then(({ user }) => setUser(user))
  }, [])

  async function signIn(name: string) {
    const { ok } = await post('/api/sign-in', { user: name })
    if (ok) setUser(name)
  }
  async function signOut() {
    await post('/api/sign-out')
    setUser(null)
  }

  if (user === undefined) return <main>Loading…</main>
  return (
    <main>
      <h1>Orders</h1>
      {user === null ? (
        ['Mara', 'Tom'].map((name) => (
          <button key={name} type="button" onClick={() => signIn(name)}>
            Sign in as {name}
          </button>
        ))
      ) : (
        <>
          <p>
            You are {user}.{' '}
            <button type="button" onClick={signOut}>
              Sign out
            </button>
          </p>
          <Chat key={user} user={user} threadId={threadId} />
        </>
      )}
    </main>
  )
}
