/** For authors of connections: a request and its response, with the same errors as `fetchServerSentEvents`. */
export { eventStream, fetchResponse, responseBody } from './connections/fetch.js'
