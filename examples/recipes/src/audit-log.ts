import { appendFile } from 'node:fs/promises'
import { type Agent, type AgentOptions, type AuditEntry, createAgent } from '@countersign/server'

/**
 * An agent that logs who asked for what, what was decided, what ran and how it ended: one JSON line each, in
 * order, append-only. Arguments and users are keyed hashes: a line reveals nothing, but two lines can be
 * compared. If a tool has `redact`, its redacted arguments are logged in plain text.
 */
export function auditedAgent(file: string, { approvals, ...options }: AgentOptions): Agent {
  return createAgent({ ...options, approvals: { ...approvals, onAudit: jsonLines(file) } })
}

/** Lines are written one after another; the run continues once its own line is in the file. */
function jsonLines(file: string): (entry: AuditEntry) => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return (entry) => {
    const write = () => appendFile(file, `${JSON.stringify(entry)}\n`)
    last = last.then(write, write)
    return last
  }
}
