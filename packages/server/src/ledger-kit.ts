/** For custom ledgers: implement a row store. The rules of a ledger are implemented above it, once for all stores. */

export { fairDeliveries, plainMembers, received } from './channel/answer-channel.js'
export { runEnded as endedRun } from './channel/answer-queue.js'
export {
  checkOptions,
  method,
  milliseconds,
  type Rule,
  type Rules,
  text,
  wholeNumber,
} from './encoding/check-options.js'
export {
  compareAndSwap,
  type RemoteRows,
  type RowsNow,
  type Swap,
  type Within,
} from './ledger/compare-and-swap.js'
export { createLedger, type LedgerLimits, ledgerLimitRules, positive } from './ledger/create-ledger.js'
export type { Change, Decide, ListedRows, Room, Row, RowStore, StoredRow } from './ledger/row-store.js'
export {
  ledgerTables,
  type SqlDatabase,
  type SqlQuery,
  type SqlRow,
  type SqlRowOptions,
  type SqlSession,
  type SqlTransaction,
  type SqlValue,
  sqlClock,
  sqlIndex,
  sqlNames,
  sqlRows,
  sqlSequence,
} from './ledger/sql-rows.js'
export { createThreads, threadLimitRules } from './threads/create-threads.js'
export type {
  HeaderRow,
  ItemRow,
  ListPosition,
  ThreadBackend,
  ThreadLook,
  ThreadRows,
  ThreadWrite,
} from './threads/thread-rows.js'
