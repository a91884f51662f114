/** For custom model adapters; test them with `describeModel` of `@countersign/testing`. */
export {
  guardedEvents,
  isRetryableStatus,
  modelError,
  retryAfterOf,
  truncatedStream,
} from './model/model-error.js'
export { asList, asNumber, asRecord, asText, type Fields, parseJson } from './model/unknown.js'
export { failed, isSuccess, succeeded, type ToolOutcome, toProviderText } from './outcome.js'
