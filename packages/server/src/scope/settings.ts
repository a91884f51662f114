import { CountersignError, type Message } from '@countersign/core'
import { type AnswerChannel, defaultAnswerChannel } from '../channel/answer-channel.js'
import { failSafeAnswerChannel } from '../channel/fail-safe-answer-channel.js'
import { newApprovalId, randomId } from '../encoding/ids.js'
import { warnOnce } from '../encoding/warn-once.js'
import { defaultLedger } from '../ledger/approval-cache.js'
import type { AuditEntry, Ledger } from '../ledger/ledger.js'
import { memoryLedger } from '../ledger/memory-ledger.js'
import { type FullLimits, type Limits, readLimits } from '../limits.js'
import type { Model } from '../model/model.js'
import { failSafeRunLog } from '../run-log/fail-safe-run-log.js'
import { defaultRunLog } from '../run-log/memory-run-log.js'
import type { RunLog } from '../run-log/run-log.js'
import { createKeyring, type Keyring, type Secret, secretFromEnvironment } from '../tokens/keys.js'
import { type AgentTool, createToolkit, type Toolkit } from '../tools/toolkit.js'
import type { Confirm } from './confirm.js'
import { type PermissionLevel, type Policy, withPermission } from './policy.js'

/** Where warnings go. */
export type Warn = (message: string, error?: unknown) => void

export interface ApprovalOptions {
  /**
   * At least 32 bytes, or a list for rotation. Default: the environment's `COUNTERSIGN_SECRET`, else a random one with a warning.
   */
  readonly secret?: Secret | readonly Secret[] | undefined
  /** Default: one `memoryLedger()` for the whole process. */
  readonly ledger?: Ledger | undefined
  /**
   * What was asked, and what was approved for a session, before this moment is void: an answer is refused as `approval-not-found`. To be
   * set to the present after a ledger was put back from a copy, which does not know what was carried out since the copy was made. A
   * fixed moment, not `new Date()`: that would void everything with each start. Default: nothing is void.
   */
  readonly epoch?: Date | undefined
  /** Seconds until a request expires. Default: 24 hours. A tool's own `expiresIn` beats it. */
  readonly expiresIn?: number | 'never' | undefined
  /**
   * Lets a call run unasked, asks the person, or forbids it. It is asked when the model makes a call and again right before the call
   * starts, so it should have no effects of its own.
   */
  readonly policy?: Policy | undefined
  /** How much the agent may do by itself. Default: what the policy and the tools say. */
  readonly permission?: PermissionLevel | undefined
  /** Masks arguments for display where a tool has no `redact` of its own; {@link sanitizeArgs} is one. Default: none is masked. */
  readonly redact?: ((input: unknown) => unknown) | undefined
  /**
   * Asks for more proof than the session gives: once for each answer that is about to be carried out, right before the ledger takes it.
   * Anything but `true`, or a throw, refuses the answer and leaves the request open. A repeat of an answer that was carried out before
   * only tells the stored outcome, and is not asked about.
   */
  readonly confirm?: Confirm | undefined
  /**
   * Asks also by a call of the client tool `client.requestApproval`, for clients that know approvals only so, and takes its result
   * (`{ decision: 'approve' | 'deny', scope?, reason? }`) for an answer. Default `false`.
   */
  readonly askAsTool?: boolean | undefined
  /** Refuses answers of clients that send no token back. Default: the ledger's own record is enough for those. */
  readonly requireToken?: boolean | undefined
  /**
   * Gets each line of the audit trail as it is written, also where the ledger keeps none; the run waits for it. What it throws is
   * warned about and stops nothing.
   */
  readonly onAudit?: ((entry: AuditEntry) => void | Promise<void>) | undefined
  /** Ids of approvals: unguessable, at least 128 random bits. */
  readonly generateId?: (() => string) | undefined
  /** Milliseconds a claim holds without being renewed. Default 30,000. */
  readonly lease?: number | undefined
  /**
   * Milliseconds to wait for the outcome of an answer that another run carries out. An approved tool that has no `timeout` has as long to
   * end once its run was stopped or its reader has gone; then it is aborted, and its call counts as interrupted. Default 30,000.
   */
  readonly wait?: number | undefined
}

export interface AgentOptions {
  readonly model: Model
  readonly tools?: readonly AgentTool[] | undefined
  readonly system?: string | undefined
  /** Model calls in one run. Default 32. */
  readonly maxSteps?: number | undefined
  /** Tools that run at once. Default `'unbounded'`. */
  readonly concurrency?: number | 'unbounded' | undefined
  readonly approvals?: ApprovalOptions | undefined
  /** What runs have said, so that one whose stream broke off can be taken up. Default: one `memoryRunLog()` for the whole process. */
  readonly runLog?: RunLog | undefined
  /** Brings answers to runs that stay open. Default: one for the whole process; runs on several machines need a shared one. */
  readonly answerChannel?: AnswerChannel | undefined
  /** What callers may hold in memory. Each limit has a default. */
  readonly limits?: Limits | undefined
  /** `false` returns the model's calls untouched: nothing is asked and nothing runs. Default `true`. */
  readonly runTools?: boolean | undefined
  /** Keep `system` and `developer` messages that a client sends. Default: they are left out with a warning. */
  readonly trustSystemMessages?: boolean | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: (() => number) | undefined
  /** Ids of messages. */
  readonly generateId?: (() => string) | undefined
  /** Default `console.warn`. */
  readonly warn?: Warn | undefined
  /** Gets the error behind a RUN_ERROR; the client gets its code and a neutral sentence. Default: `warn`. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/** {@link AgentOptions}, checked and complete. */
export interface AgentSettings {
  readonly model: Model
  readonly toolkit: Toolkit
  readonly system: string | undefined
  readonly maxSteps: number
  readonly concurrency: number
  readonly runTools: boolean
  readonly runLog: RunLog
  readonly answerChannel: AnswerChannel
  readonly limits: FullLimits
  readonly keeps: (message: Message) => boolean
  readonly approvals: ApprovalSettings
  readonly now: () => number
  readonly generateId: () => string
  readonly warn: Warn
  readonly onError: (error: unknown) => void
}

interface ApprovalSettings extends Pick<ApprovalOptions, 'policy' | 'confirm' | 'redact' | 'onAudit'> {
  readonly keyring: Keyring
  readonly ledger: Ledger
  /** Milliseconds since 1970. */
  readonly epoch: number
  readonly expiresIn: number | 'never'
  readonly askAsTool: boolean
  readonly requireToken: boolean
  readonly generateId: () => string
  readonly leaseMs: number
  readonly waitMs: number
}

const DAY_IN_SECONDS = 24 * 60 * 60

/** @throws CountersignError `invalid-option` or `invalid-tool`, naming what is wrong. */
export function readSettings(options: AgentOptions): AgentSettings {
  const { model } = options
  if (typeof model?.stream !== 'function' || typeof model.id !== 'string') {
    const message = 'createAgent needs `model`: an object with an `id` (text) and a stream() method.'
    throw new CountersignError('invalid-option', message, { option: 'model' })
  }
  const warn = carefully(options.warn ?? warnOnConsole)
  const now = options.now ?? Date.now
  const concurrency = options.concurrency ?? 'unbounded'
  return {
    model: options.model,
    toolkit: createToolkit(options.tools ?? []),
    system: options.system,
    maxSteps: positive('maxSteps', options.maxSteps ?? 32),
    concurrency:
      concurrency === 'unbounded' ? Number.POSITIVE_INFINITY : positive('concurrency', concurrency),
    runTools: options.runTools ?? true,
    runLog: failSafeRunLog(options.runLog ?? defaultRunLog(), warn),
    answerChannel: failSafeAnswerChannel(options.answerChannel ?? defaultAnswerChannel(), warn),
    limits: readLimits(options.limits),
    keeps: options.trustSystemMessages ? () => true : ({ role }) => role !== 'system' && role !== 'developer',
    approvals: readApprovals(options.approvals ?? {}, now, warn),
    now,
    generateId: options.generateId ?? (() => randomId('msg_')),
    warn,
    onError: carefully(options.onError ?? ((error) => warn('A run failed.', error))),
  }
}

function readApprovals(options: ApprovalOptions, now: () => number, warn: Warn): ApprovalSettings {
  const keyring = createKeyring({ secret: options.secret ?? secretFromEnvironment(), warn })
  // one ledger for this process, which approvalCache shows, unless the clock is the application's own
  const ledger = options.ledger ?? (now === Date.now ? defaultLedger() : memoryLedger({ now }))
  if (typeof ledger.issue !== 'function') {
    const message = 'approvals.ledger must be a ledger. fileLedger() gives a promise of one: await it.'
    throw new CountersignError('invalid-option', message, { option: 'approvals.ledger' })
  }
  if (keyring.durable && !ledger.durable) {
    warnOnce(
      warn,
      'countersign: the secret outlives this process but the ledger does not: approvals asked before a restart, or by another process, are refused. Give approvals.ledger a durable one.',
    )
  }
  const expiresIn = options.expiresIn ?? DAY_IN_SECONDS
  return {
    keyring,
    ledger,
    epoch: options.epoch === undefined ? Number.NEGATIVE_INFINITY : momentOf(options.epoch),
    expiresIn: expiresIn === 'never' ? expiresIn : positive('approvals.expiresIn', expiresIn),
    policy: withPermission(options.permission, options.policy),
    confirm: options.confirm,
    redact: options.redact,
    onAudit: options.onAudit,
    askAsTool: options.askAsTool ?? false,
    requireToken: options.requireToken ?? false,
    generateId: options.generateId ?? newApprovalId,
    leaseMs: positive('approvals.lease', options.lease ?? 30_000),
    waitMs: positive('approvals.wait', options.wait ?? 30_000),
  }
}

function momentOf(epoch: unknown): number {
  const moment = epoch instanceof Date ? epoch.getTime() : Number.NaN
  if (!Number.isNaN(moment)) return moment
  throw new CountersignError(
    'invalid-option',
    'approvals.epoch must be a Date, such as new Date("2026-01-31T12:00:00Z"), or be left out.',
    { option: 'approvals.epoch' },
  )
}

function positive(option: string, value: number): number {
  if (Number.isFinite(value) && value > 0) return value
  throw new CountersignError('invalid-option', `${option} must be a positive number, not ${value}.`, {
    option,
    value,
  })
}

/** A logger that throws stops nothing: a claimed call least of all. */
function carefully<Args extends readonly unknown[]>(tell: (...args: Args) => void): (...args: Args) => void {
  return (...args) => {
    try {
      tell(...args)
    } catch (error) {
      console.warn('countersign: the logger of the application failed.', error)
    }
  }
}

function warnOnConsole(message: string, error?: unknown): void {
  if (error === undefined) console.warn(message)
  else console.warn(message, error)
}
