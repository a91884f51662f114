import { appendFile } from 'node:fs/promises'
import { type Agent, type AgentOptions, type AuditEntry, createAgent } from '@countersign/server'

/**
 * An agent that writes down who asked for what, what was decided, what ran and how it ended: one JSON line for each, in order, only ever
 * appended. Arguments and people are keyed hashes, so that a line says nothing by itself and two lines can still be held against each
 * other; where a tool has `redact`, what it left of the arguments is there to read.
 */
export function auditedAgent(file: string, { approvals, ...options }: AgentOptions): Agent {
  return createAgent({ ...options, approvals: { ...approvals, onAudit: jsonLines(file) } })
}

/** Lines are written one after another; the run goes on when its own is in the file. */
function jsonLines(file: string): (entry: AuditEntry) => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return (entry) => {
    const write = () => appendFile(file, `${JSON.stringify(entry)}\n`)
    last = last.then(write, write)
    return last
  }
}
