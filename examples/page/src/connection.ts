import { fetchServerSentEvents, withGrants } from '@countersign/client'

/** Where the server is and what it speaks: the one line to change for a server of another make. */
export const connection = withGrants(fetchServerSentEvents('/api/chat'), '/api/grants')
