import { loadThread } from '@countersign/server'
import { connection } from 'next/server'
import { Suspense } from 'react'
import { Chat } from '@/app/chat'
import { getAgent } from '@/server/agent'
import { userId } from '@/server/user'

async function LoadedChat({ params }: PageProps<'/chat/[threadId]'>) {
  const { threadId } = await params
  await connection()
  const initialThread = await loadThread(await getAgent(), { subject: await userId(), threadId })
  return <Chat key={threadId} threadId={threadId} initialThread={initialThread} />
}

export default function Page(props: PageProps<'/chat/[threadId]'>) {
  return (
    <main>
      <h1>Orders</h1>
      <Suspense fallback="Loading…">
        <LoadedChat {...props} />
      </Suspense>
    </main>
  )
}
