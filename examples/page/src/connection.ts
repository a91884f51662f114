import { fetchServerSentEvents, withGrants } from '@countersign/client'

/** The server's address and protocol: the only line to change for a different server. */
export const connection = withGrants(fetchServerSentEvents('/api/chat'), '/api/grants')
