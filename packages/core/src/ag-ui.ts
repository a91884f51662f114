/**
 * The rest of AG-UI 1.0, beyond texts, reasoning, calls and approvals, and the strict validation of all of
 * it. A page loads this entry point when a stream first needs it; servers and tools import it.
 */
export { fromAGUIMessages } from './conversions/from-agui.js'
export { fullSteps } from './machine/full-steps.js'
export {
  createEventReader,
  type EventReader,
  type EventReaderOptions,
  type ReaderWarning,
} from './protocol/reader.js'
export { validateEvent } from './protocol/validate.js'
