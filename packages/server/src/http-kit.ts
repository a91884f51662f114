/** For routes with another protocol: reads requests within the limits and quotas of `handleChat`, and responds with an event stream. */
export { randomId } from './encoding/ids.js'
export { subjectOf } from './http/holder.js'
export { type Arrival, checkRequest, readText, rejection, unknownCaller } from './http/http.js'
export { type Held, takeRun } from './http/quota.js'
export { checkId, invalid, parseBody, readParsedInput } from './http/run-input.js'
export { framesOf, KEEP_ALIVE_MS, SSE_HEADERS, type SseFrames, sseBody } from './http/sse.js'
