export {
  type AnswerChannelUnderTest,
  type CreateAnswerChannel,
  describeAnswerChannel,
} from './suites/answer-channel.js'
export {
  type BindingHarness,
  type BindingRunner,
  describeBinding,
  type MountedPage,
  type PageOptions,
  type PageSettings,
  type PageUse,
} from './suites/binding.js'
export { type ConnectionUnderTest, type CreateConnection, describeConnection } from './suites/connection.js'
export { type CreateLedger, describeLedger, type LedgerUnderTest } from './suites/ledger.js'
export { type CreateModel, describeModel, type ModelStory } from './suites/model.js'
export {
  type CreatePersistence,
  type CreateRecordStore,
  describePersistence,
  describeRecordStore,
  type PersistenceUnderTest,
  type RecordStoreUnderTest,
} from './suites/persistence.js'
export { type CreateRunLog, describeRunLog, type RunLogUnderTest } from './suites/run-log.js'
export type { SuiteRunner } from './suites/runner.js'
export {
  describeSharedLedger,
  type LedgerWorker,
  type SharedLedgerOptions,
  type SharedLedgerUnderTest,
  workThrough,
} from './suites/shared-ledger.js'
export { type CreateThreads, describeThreads, type ThreadsUnderTest } from './suites/threads.js'
export {
  createRunVerifier,
  type RunVerifier,
  type VerifiedOptions,
  type VerifiedRequest,
  verified,
  verifyEvents,
  verifyRun,
} from './suites/verifier.js'
