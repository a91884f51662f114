import { randomUUID } from 'node:crypto'
import { redirect } from 'next/navigation'
import { connection } from 'next/server'
import { Suspense } from 'react'

/** A new conversation. Its id is in the address, so that the conversation can be opened again. */
async function NewChat(): Promise<never> {
  await connection()
  redirect(`/chat/${randomUUID()}`)
}

export default function Page() {
  return (
    <Suspense>
      <NewChat />
    </Suspense>
  )
}
