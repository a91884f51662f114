export { type CountersignDevtools, defineDevtools } from './element.js'
export { actEntry } from './entries.js'
export type { StateThen } from './fold.js'
export {
  type EntryKind,
  type Flags,
  type RecordedAction,
  type RecordedEnd,
  type RecordedError,
  type RecordedStep,
  type Recording,
  readRecording,
  type TimelineEntry,
  toError,
} from './form.js'
export { maskRecording } from './mask.js'
export { printEntry, printState } from './print.js'
export { type RecordedClient, type Recorder, type RecorderOptions, record } from './recorder.js'
export { sourceOf, type TimelineSource } from './source.js'
