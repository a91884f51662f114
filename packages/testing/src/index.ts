export { printState, type Recording, type TimelineEntry } from '@countersign/devtools'
export {
  type AnswerChannelUnderTest,
  type CreateAnswerChannel,
  describeAnswerChannel,
} from './answer-channel-suite.js'
export {
  type BindingHarness,
  type BindingRunner,
  describeBinding,
  type MountedPage,
  type PageOptions,
  type PageSettings,
  type PageUse,
} from './binding-suite.js'
export { type ScriptedConnection, scriptedConnection } from './connection.js'
export { type ConnectionUnderTest, type CreateConnection, describeConnection } from './connection-suite.js'
export {
  act,
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
export { type CreateLedger, describeLedger, type LedgerUnderTest, type SuiteRunner } from './ledger-suite.js'
export { type CreateModel, describeModel, type ModelStory } from './model-suite.js'
export {
  type CreatePersistence,
  type CreateRecordStore,
  describePersistence,
  describeRecordStore,
  type PersistenceUnderTest,
  type RecordStoreUnderTest,
} from './persistence-suite.js'
export { type Replayed, type ReplayOptions, replayRecording } from './replay-recording.js'
export { type CreateRunLog, describeRunLog, type RunLogUnderTest } from './run-log-suite.js'
export {
  byHand,
  type RunScript,
  type Script,
  type ScriptedRun,
  type ScriptOptions,
  type Steps,
} from './script.js'
export {
  describeSharedLedger,
  type LedgerWorker,
  type SharedLedgerOptions,
  type SharedLedgerUnderTest,
  workThrough,
} from './shared-ledger-suite.js'
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
export { type CreateThreads, describeThreads, type ThreadsUnderTest } from './threads-suite.js'
export { createTimeline, explained, type Timeline, watch } from './timeline.js'
export {
  createRunVerifier,
  type RunVerifier,
  type VerifiedOptions,
  type VerifiedRequest,
  verified,
  verifyEvents,
  verifyRun,
} from './verifier.js'
export { macrotasks as passMacrotasks, microtasks as passMicrotasks, until } from './waiting.js'
export type { ScriptedEvent } from './writer.js'
