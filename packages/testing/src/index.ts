export { printState, type Recording, type TimelineEntry } from '@countersign/devtools'
export { type ScriptedConnection, scriptedConnection } from './connection.js'
export {
  action,
  ask,
  bytes,
  call,
  callArgs,
  callEnd,
  callStart,
  cancelled,
  clientReady,
  custom,
  cut,
  denied,
  end,
  error,
  event,
  failure,
  finish,
  gated,
  hold,
  macrotasks,
  microtasks,
  reasoning,
  refuse,
  resolve,
  respond,
  result,
  started,
  text,
  textDelta,
  textEnd,
  textStart,
} from './events.js'
export { type Replayed, type ReplayOptions, replayRecording } from './replay-recording.js'
export {
  byHand,
  type RunScript,
  type Script,
  type ScriptedRun,
  type ScriptOptions,
  type Steps,
} from './script.js'
export type {
  AskOptions,
  EventStep,
  FailedOutcome,
  FinishOptions,
  FlowStep,
  HttpStep,
  Step,
  StreamEnd,
} from './steps.js'
export { createTimeline, explained, type Timeline, watch } from './timeline.js'
export { macrotasks as passMacrotasks, microtasks as passMicrotasks, until } from './waiting.js'
export type { ScriptedEvent } from './writer.js'
