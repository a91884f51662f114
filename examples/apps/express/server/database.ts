import { DatabaseSync } from '@photostructure/sqlite'

/** Everything that outlives the process: conversations, approval requests, orders and sessions. */
export const database = new DatabaseSync(process.env.DATABASE ?? 'chat.db')
database.exec('pragma busy_timeout = 5000; pragma journal_mode = wal; pragma synchronous = full')
