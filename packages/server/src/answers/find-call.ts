import { readArguments } from '../encoding/canonical.js'
import { groupedBy } from '../encoding/groups.js'
import type { CallSite } from '../history/history.js'
import type { LedgerEntry } from '../ledger/ledger.js'
import { approvalIdOf } from './answers.js'

/** The calls of a history that share an id. If several match a record equally, the last one counts. */
interface SameId {
  readonly byApproval: ReadonlyMap<string, CallSite>
  /** The calls that name no approval: by tool and arguments, and the last of all. */
  readonly byWords: ReadonlyMap<string, CallSite>
  readonly last: CallSite | undefined
}

/**
 * Finds the call of a record: by the approval that the call names, else by the call's id: the one with the same arguments, or the last.
 * Each call is read once, however many records there are: the client decides how many calls share an id.
 */
export function siteFinder(sites: readonly CallSite[]): (entry: LedgerEntry) => CallSite | undefined {
  let byId: Map<string, CallSite[]> | undefined
  const read = new Map<string, SameId>()
  return ({ record }) => {
    const { approvalId, toolCallId, toolName, earlier = [] } = record
    byId ??= groupedBy(sites, ({ call }) => call.id)
    const known = read.get(toolCallId) ?? readSameId(byId.get(toolCallId) ?? [])
    read.set(toolCallId, known)
    const named = [...earlier, approvalId].findLast((id) => known.byApproval.has(id))
    return (
      known.byApproval.get(named ?? '') ??
      known.byWords.get(wordsOf(toolName, record.arguments)) ??
      known.last
    )
  }
}

function readSameId(sites: readonly CallSite[]): SameId {
  const byApproval = new Map<string, CallSite>()
  const byWords = new Map<string, CallSite>()
  let last: CallSite | undefined
  for (const site of sites) {
    const approvalId = approvalIdOf(site)
    if (approvalId !== undefined) {
      byApproval.set(approvalId, site)
      continue
    }
    const { name, arguments: text } = site.call.function
    const read = readArguments(text)
    if (read.ok) byWords.set(wordsOf(name, read.canonical), site)
    last = site
  }
  return { byApproval, byWords, last }
}

/** A key of a tool's name and its canonical arguments; different pairs have different keys. */
function wordsOf(toolName: string, canonical: string): string {
  return `${toolName.length}:${toolName}${canonical}`
}

/** Whether a record is for this call: the same tool and the same arguments. */
export function isAbout({ record }: LedgerEntry, { call }: CallSite): boolean {
  if (record.toolName !== call.function.name) return false
  const read = readArguments(call.function.arguments)
  return read.ok && read.canonical === record.arguments
}
