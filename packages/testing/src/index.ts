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
export {
  type CreatePersistence,
  type CreateRecordStore,
  describePersistence,
  describeRecordStore,
  type PersistenceUnderTest,
  type RecordStoreUnderTest,
} from './persistence-suite.js'
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
export {
  createTimeline,
  explained,
  printState,
  type Timeline,
  type TimelineEntry,
  watch,
} from './timeline.js'
export { macrotasks as passMacrotasks, microtasks as passMicrotasks, until } from './waiting.js'
export type { ScriptedEvent } from './writer.js'
