import { ChatClient, fetchServerSentEvents } from '@countersign/client'

/** The page's one conversation. */
export const client = new ChatClient({ connection: fetchServerSentEvents('/api/chat') })
