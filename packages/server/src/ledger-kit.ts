/** For custom ledgers: implement a row store. The rules of a ledger are implemented above it, once for all stores. */
export { runEnded as endedRun } from './channel/answer-queue.js'
export { plainMembers, received } from './channel/between-processes.js'
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
  type SqlDatabase,
  type SqlQuery,
  type SqlRow,
  type SqlRowOptions,
  type SqlSession,
  type SqlTransaction,
  type SqlValue,
  sqlClock,
  sqlNames,
  sqlRows,
} from './ledger/sql-rows.js'
export { ledgerTables, sqlIndex, sqlSequence } from './ledger/sql-schema.js'
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
