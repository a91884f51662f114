import type { Message } from '@countersign/core'
import { type AnswerChannel, defaultAnswerChannel, failSafeAnswerChannel } from '../channel/answer-channel.js'
import { MAX_DELAY } from '../encoding/check-options.js'
import { notify } from '../encoding/hooks.js'
import { usableIds } from '../encoding/ids.js'
import { warnOnce } from '../encoding/warn-once.js'
import { defaultLedger } from '../ledger/approval-cache.js'
import type { AuditEntry, Ledger } from '../ledger/ledger.js'
import { memoryLedger } from '../ledger/memory-ledger.js'
import { type FullLimits, type Limits, readLimits } from '../limits.js'
import type { Model } from '../model/model.js'
import type { Observe } from '../observe/events.js'
import { defaultRunLog } from '../run-log/memory-run-log.js'
import { failSafeRunLog, type RunLog } from '../run-log/run-log.js'
import { type KnownThreads, knownThreads } from '../threads/known-threads.js'
import type { ThreadStore } from '../threads/thread-store.js'
import { createKeyring, type Keyring, type Secret, secretFromEnvironment } from '../tokens/keys.js'
import { type AgentTool, createToolkit, type Toolkit } from '../tools/toolkit.js'
import type { Confirm } from './confirm.js'
import { type OutputOptions, type OutputSettings, readOutputOptions } from './output.js'
import { type PermissionLevel, type Policy, withPermission } from './policy.js'
import type { PrepareStep } from './prepare-step.js'

export type Warn = (message: string, error?: unknown) => void

export interface ApprovalOptions {
  /** At least 32 bytes, or a list for rotation. Default: the environment's `COUNTERSIGN_SECRET`, else a random one with a warning. */
  readonly secret?: Secret | readonly Secret[] | undefined
  /** Default: one `memoryLedger()` for the whole process. */
  readonly ledger?: Ledger | undefined
  /**
   * Approval requests and session grants from before this moment are void: answers are refused with `approval-not-found`. After
   * restoring a ledger from a backup, which doesn't know what was carried out since, set it to the time of the restore. Use a
   * fixed moment, not `new Date()`: that would void everything with each start. Default: nothing is void.
   */
  readonly epoch?: Date | undefined
  /** Seconds until a request expires. Default: 24 hours. A tool's own `expiresIn` overrides it. */
  readonly expiresIn?: number | 'never' | undefined
  /**
   * Lets a call run without approval, requires approval, or forbids the call. It is called when the model makes a call and again right
   * before the call starts, so it should have no side effects.
   */
  readonly policy?: Policy | undefined
  /**
   * A policy on trial: it decides nothing. Where it would have decided otherwise about a new call, the audit trail gets a line (`shadow`).
   * The run waits for it.
   */
  readonly shadow?: Policy | undefined
  /** What the agent may do without approval; `auto` overrules `needsApproval`. Default: as the policy and the tools decide. */
  readonly permission?: PermissionLevel | undefined
  /** Masks arguments for display if the tool has no `redact` of its own, for example {@link sanitizeArgs}. Default: no masking. */
  readonly redact?: ((input: unknown) => unknown) | undefined
  /**
   * Requires more proof than the session provides: called once for each answer about to be carried out, right before the ledger claims it.
   * Anything but `true`, or a throw, refuses the answer and leaves the request open. Repeating an answer that was carried out before
   * only returns the stored outcome, without this call.
   */
  readonly confirm?: Confirm | undefined
  /**
   * Also requests approval by a call of the client tool `client.requestApproval`, for clients that support approvals only as tools, and
   * accepts its result (`{ decision: 'approve' | 'deny', scope?, reason? }`) as an answer. Default `false`.
   */
  readonly askAsTool?: boolean | undefined
  /** Refuses answers of clients that return no token. Default: the token in the ledger's record replaces it. */
  readonly requireToken?: boolean | undefined
  /**
   * Receives each line of the audit trail as it is written, even if the ledger stores none; the run waits for it. If it throws, that is
   * logged as a warning and stops nothing.
   */
  readonly onAudit?: ((entry: AuditEntry) => void | Promise<void>) | undefined
  /** Generates approval ids: unguessable, at least 128 random bits. Random ids replace those that no request may have. */
  readonly generateId?: (() => string) | undefined
  /** Milliseconds a claim holds without renewal. Default 30,000. */
  readonly lease?: number | undefined
  /**
   * Milliseconds to wait for the outcome of an answer that another run carries out. Also the time that an approved tool without a
   * `timeout` has to finish once its run was stopped or its reader has gone; then it is aborted, and its call is interrupted. Default 30,000.
   */
  readonly wait?: number | undefined
  /** Milliseconds that a tool's `preview` may take. Default 5,000. Beyond that, the request says that there is no preview, and why. */
  readonly previewTimeout?: number | undefined
}

/** How long (ms) a run waits before it ends with an error. What it has used and kept until then stays. */
export interface Timeouts {
  /** For a model that says nothing: the run ends with `model-timeout`. Default 600,000. */
  readonly model?: number | undefined
  /**
   * For the whole run, with the time that its user takes to answer: it ends with `run-timeout`, or with its open approval requests if it was
   * only waiting for them. A tool that runs then is awaited like that of a stopped run (`approvals.wait`). Default: no limit.
   */
  readonly run?: number | undefined
}

export interface AgentOptions<Output = unknown> extends OutputOptions<Output> {
  readonly model: Model
  readonly tools?: readonly AgentTool[] | undefined
  readonly system?: string | undefined
  /** Chooses model, tools, system prompt and messages for each call of the model. Default: always the agent's. */
  readonly prepareStep?: PrepareStep | undefined
  /** How often one run may call the model. Default 32. */
  readonly maxSteps?: number | undefined
  /** How many tools run at once. Default `'unbounded'`. */
  readonly concurrency?: number | 'unbounded' | undefined
  readonly approvals?: ApprovalOptions | undefined
  /** Stores the events of runs, so that a client can rejoin one whose stream broke. Default: one `memoryRunLog()` for the whole process. */
  readonly runLog?: RunLog | undefined
  /**
   * Stores the conversations. With it, the server owns them: of the history in a request, only new user messages and results of client
   * tools count, and a request that continues a conversation which is not stored is refused. Default: none, and each request brings its whole
   * history.
   */
  readonly threads?: ThreadStore | undefined
  /**
   * Whether a page may bring its copy of a conversation that the store does not have, for example because it began without one. The copy is
   * as untrusted as any history from a client: the model reads it, nothing of it runs, and no approval in it counts. Default `false`: such a
   * request is refused with `thread-unknown`.
   */
  readonly acceptUploads?: boolean | undefined
  /** Delivers answers to open runs. Default: one for the whole process; runs on several machines need a shared one. */
  readonly answerChannel?: AnswerChannel | undefined
  /** How much callers can make it hold in memory. Each limit has a default. */
  readonly limits?: Limits | undefined
  /** How long a run and its model may take. A tool has its own `timeout`. */
  readonly timeouts?: Timeouts | undefined
  /** `false` returns the model's calls untouched: no approval is requested and nothing runs. Default `true`. */
  readonly runTools?: boolean | undefined
  /** Keeps `system` and `developer` messages sent by a client. Default: they are dropped with a warning. */
  readonly trustSystemMessages?: boolean | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: (() => number) | undefined
  /** Generates message ids. Random ids replace those that no request may have (`limits.idLength`). */
  readonly generateId?: (() => string) | undefined
  /** Default `console.warn`. */
  readonly warn?: Warn | undefined
  /** Receives the error behind a RUN_ERROR; the client gets its code and a neutral message. Default: `warn`. */
  readonly onError?: ((error: unknown) => void) | undefined
  /** Receives an event for each thing in a run that is worth a span: for logs, metrics and traces. */
  readonly observe?: Observe | undefined
}

/** These options with their defaults filled in. */
type Complete<Options, Names extends keyof Options> = {
  readonly [Name in Names]-?: Exclude<Options[Name], undefined>
}

/** {@link AgentOptions}, validated and complete. */
export interface AgentSettings
  extends Pick<AgentOptions, 'model' | 'system' | 'prepareStep' | 'observe'>,
    Complete<AgentOptions, 'maxSteps' | 'runTools' | 'runLog' | 'acceptUploads' | 'answerChannel' | 'now'>,
    Complete<AgentOptions, 'generateId' | 'warn' | 'onError'> {
  readonly toolkit: Toolkit
  readonly output: OutputSettings | undefined
  readonly concurrency: number
  readonly threads: KnownThreads | undefined
  readonly limits: FullLimits
  readonly timeouts: { readonly model: number; readonly run: number | undefined }
  readonly keeps: (message: Message) => boolean
  readonly approvals: ApprovalSettings
}

interface ApprovalSettings
  extends Pick<ApprovalOptions, 'policy' | 'shadow' | 'confirm' | 'redact' | 'onAudit'>,
    Complete<ApprovalOptions, 'ledger' | 'expiresIn' | 'askAsTool' | 'requireToken' | 'generateId'>,
    Complete<ApprovalOptions, 'previewTimeout'> {
  readonly keyring: Keyring
  /** Milliseconds since 1970. */
  readonly epoch: number
  readonly leaseMs: number
  readonly waitMs: number
}

const DAY_IN_SECONDS = 24 * 60 * 60

/**
 * Fills in the defaults of options that `agentRules` have checked.
 *
 * @throws CountersignError `invalid-option` or `invalid-tool`, for what is more than one option of a wrong kind.
 */
export function readSettings(options: AgentOptions): AgentSettings {
  const warn = carefully(options.warn ?? warnOnConsole)
  const now = options.now ?? Date.now
  const { model, system, prepareStep, observe, maxSteps = 32, concurrency = 'unbounded' } = options
  const { runTools = true, acceptUploads = false } = options
  return {
    ...{ model, system, prepareStep, observe, maxSteps, runTools, acceptUploads, now, warn },
    generateId: usableIds(options.generateId, 'msg_'),
    toolkit: createToolkit(options.tools ?? []),
    output: readOutputOptions(options),
    concurrency: concurrency === 'unbounded' ? Number.POSITIVE_INFINITY : concurrency,
    runLog: failSafeRunLog(options.runLog ?? defaultRunLog(), warn),
    threads: options.threads && knownThreads(options.threads),
    answerChannel: failSafeAnswerChannel(options.answerChannel ?? defaultAnswerChannel(), warn),
    limits: readLimits(options.limits, options.threads?.maxMessageBytes),
    timeouts: readTimeouts(options.timeouts),
    keeps: options.trustSystemMessages ? () => true : ({ role }) => role !== 'system' && role !== 'developer',
    approvals: readApprovals(options.approvals ?? {}, now, warn),
    onError: carefully(options.onError ?? ((error) => warn('A run failed.', error))),
  }
}

const TEN_MINUTES = 600_000

function readTimeouts({ model = TEN_MINUTES, run }: Timeouts = {}): AgentSettings['timeouts'] {
  return { model: Math.min(model, MAX_DELAY), run: run === undefined ? undefined : Math.min(run, MAX_DELAY) }
}

function readApprovals(options: ApprovalOptions, now: () => number, warn: Warn): ApprovalSettings {
  const keyring = createKeyring({ secret: options.secret ?? secretFromEnvironment(), warn })
  // One ledger for this process, shared with approvalCache, unless the application has its own clock.
  const ledger = options.ledger ?? (now === Date.now ? defaultLedger() : memoryLedger({ now }))
  if (keyring.durable && !ledger.durable) {
    warnOnce(
      warn,
      'countersign: the secret outlives this process but the ledger does not: approvals requested before a restart, or by another process, are refused. Give approvals.ledger a durable one.',
    )
  }
  const { confirm, redact, onAudit, expiresIn = DAY_IN_SECONDS } = options
  return {
    ...{ keyring, ledger, confirm, redact, onAudit, expiresIn },
    generateId: usableIds(options.generateId, 'approval_'),
    epoch: options.epoch?.getTime() ?? Number.NEGATIVE_INFINITY,
    policy: withPermission(options.permission, options.policy),
    shadow: options.shadow && withPermission(options.permission, options.shadow),
    askAsTool: options.askAsTool ?? false,
    requireToken: options.requireToken ?? false,
    leaseMs: options.lease ?? 30_000,
    waitMs: options.wait ?? 30_000,
    previewTimeout: options.previewTimeout ?? 5000,
  }
}

/** A logger that throws stops nothing, least of all a claimed call. */
function carefully<Args extends readonly unknown[]>(tell: (...args: Args) => void): (...args: Args) => void {
  const failed = (error: unknown) => console.warn('countersign: the logger of the application failed.', error)
  return (...args) => notify(() => tell(...args), failed)
}

function warnOnConsole(message: string, error?: unknown): void {
  if (error === undefined) console.warn(message)
  else console.warn(message, error)
}
