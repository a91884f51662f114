/** For authors of connections: a request and its answer, with the errors that `fetchServerSentEvents` has. */
export { eventStream, fetchResponse, responseBody } from './connections/fetch.js'
