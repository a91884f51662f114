/** For custom model adapters; test them with `describeModel` of `@countersign/testing`. */
export { asString as asText, parseJson } from '@countersign/core'
export {
  guardedEvents,
  isRetryableStatus,
  modelError,
  retryAfterOf,
  truncatedStream,
} from './model/model-error.js'
export { asList, asNumber, asRecord, type Fields } from './model/unknown.js'
export { failed, isSuccess, succeeded, type ToolOutcome, toProviderText } from './outcome.js'
