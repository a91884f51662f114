import { Chat } from './chat'

/** A new conversation: prerendered, and it has no id before its first message. */
export default function Page() {
  return (
    <main>
      <h1>Orders</h1>
      <Chat />
    </main>
  )
}
