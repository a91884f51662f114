import { Navigate } from '@solidjs/router'

/** A new conversation. Its id is in the address, so that the conversation can be opened again. */
export default function NewChat() {
  return <Navigate href={() => `/chat/${crypto.randomUUID()}`} />
}
