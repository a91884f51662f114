export {
  fromD1,
  fromLibsql,
  fromPGlite,
  fromPg,
  fromPostgres,
  fromSqlite,
  type SqlConnection,
} from './connection.js'
export { ensureSchema, type SchemaOptions, schemaStatements } from './schema.js'
export {
  type SqlAnswerChannel,
  type SqlAnswerChannelOptions,
  sqlAnswerChannel,
} from './sql-answer-channel.js'
export { type SqlLedgerOptions, sqlLedger } from './sql-ledger.js'
export { type SqlRunLogOptions, sqlRunLog } from './sql-run-log.js'
export { type SqlThreadsOptions, sqlThreads } from './sql-threads.js'
