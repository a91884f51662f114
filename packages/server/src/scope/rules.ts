import { type Constraint, isRecord } from '@countersign/core'
import { invalid, mayMeetAll, meetsAll, readConstraints } from '../mandates/constraint.js'
import type { Policy } from './policy.js'

/** What to decide about calls of some tools. */
export interface Rule {
  /** The tool's name, or several. Default: every tool. */
  readonly tool?: string | readonly string[] | undefined
  /**
   * Conditions on the validated arguments; all must be met. For `ask` and `block` it is enough that they may be: what can't be decided is
   * asked about, or blocked. Default: every call.
   */
  readonly where?: readonly Constraint[] | undefined
  readonly decide: 'allow' | 'ask' | 'block'
  /** The reason, as the model is told it if the call is blocked. */
  readonly because?: string | undefined
}

/**
 * A policy from rules, which are plain data. Of the rules that match a call, `block` overrules `ask`, and `ask` overrules `allow`; the order
 * only decides which reason is given, the first. If no rule matches, the tool decides.
 *
 * @throws CountersignError `invalid-option` for an invalid rule, naming its place.
 *
 * @example
 * createAgent({ model, tools, approvals: { policy: rules([
 *   { tool: 'send_email', where: [{ field: 'to', in: team }], decide: 'allow' },
 *   { tool: ['delete_file', 'move_file'], where: [{ field: 'path', under: '/etc' }], decide: 'block', because: 'Ask an administrator.' },
 * ]) } })
 */
export function rules(list: readonly Rule[]): Policy {
  if (!Array.isArray(list)) throw invalid('rules', 'a list', list)
  const all = list.map((rule, index) => readRule(rule, `rules[${index}]`))
  return ({ toolName, input }) => {
    const matching = all.filter(
      ({ tools, where, decide }) =>
        (tools === undefined || tools.includes(toolName)) &&
        (decide === 'allow' ? meetsAll : mayMeetAll)(input, where),
    )
    const found = BY_FORCE.flatMap((decision) => matching.find(({ decide }) => decide === decision) ?? [])
    return found[0] && { decision: found[0].decide, reason: found[0].because }
  }
}

/** The stronger decision first. */
const BY_FORCE = ['block', 'ask', 'allow'] as const

interface ReadRule extends Pick<Rule, 'decide' | 'because'> {
  readonly tools: readonly string[] | undefined
  readonly where: readonly Constraint[]
}

function readRule(value: unknown, place: string): ReadRule {
  if (!isRecord(value)) throw invalid(place, 'an object', value)
  const { tool, where = [], decide, because, ...more } = value
  const [unknown] = Object.keys(more)
  if (unknown !== undefined)
    throw invalid(`${place}.${unknown}`, 'left out: a rule has no such member', more[unknown])
  const tools: unknown = typeof tool === 'string' ? [tool] : tool
  const isName = (name: unknown): name is string => typeof name === 'string' && name !== ''
  if (tools !== undefined && !(Array.isArray(tools) && tools.length > 0 && tools.every(isName)))
    throw invalid(`${place}.tool`, 'the name of a tool, or a list of names', tool)
  const decided = BY_FORCE.find((decision) => decision === decide)
  if (decided === undefined) throw invalid(`${place}.decide`, '"allow", "ask" or "block"', decide)
  if (because !== undefined && typeof because !== 'string') throw invalid(`${place}.because`, 'text', because)
  return {
    tools: tools && [...tools],
    where: readConstraints(where, `${place}.where`),
    decide: decided,
    because,
  }
}
