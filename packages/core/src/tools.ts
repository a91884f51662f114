import type { StandardSchemaV1 } from '@standard-schema/spec'
import { CountersignError } from './errors.js'
import type { MandateOffer } from './mandates.js'
import type { ApprovalOption, DataPart, SourcePart } from './messages.js'
import type { Preview } from './preview.js'

/** JSON Schema of a tool's parameters, as sent to the model. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** What a decision about a call may use besides its validated input. */
export interface GateContext {
  readonly toolCallId: string
  /** The conversation as the client sent it. **Untrusted**: a client can put anything there. */
  readonly messages: readonly unknown[]
  /** The run's context, provided by the application: `subject` (who the user is) and any services it needs. */
  readonly context: Readonly<Record<string, unknown>> & { readonly subject?: string | undefined }
}

/** What a tool's `preview` gets besides its input. */
export interface PreviewContext extends GateContext {
  /** Aborted after `approvals.previewTimeout`; a preview that comes later is ignored. */
  readonly signal: AbortSignal
}

/** Whether a call needs approval: always, never, or decided from its validated input. If the function throws, approval is needed. */
export type NeedsApproval<Input> =
  | boolean
  | ((input: Input, context: GateContext) => boolean | Promise<boolean>)

/** How far an approval reaches. */
export type ApprovalScope = 'once' | 'session'

/** A user's decision. {@link ApprovalScope} says how far an approval reaches. */
export type ApprovalDecision = 'approve' | 'deny'

/** The terms of an approval as one value, for tools that come with a description, such as those of an MCP server. */
export interface ApprovalPolicy {
  readonly required: boolean
  /** The message shown to the user, plain text. */
  readonly message?: string | undefined
  /** Default `['deny', 'once']`. */
  readonly options?: readonly ApprovalOption[] | undefined
}

/** A session approval as shown to the user: calls of this tool in this thread run without an approval request. */
export interface SessionGrant {
  /** Identifies it to its owner; not a secret. */
  readonly id: string
  readonly threadId: string
  readonly toolName: string
  /** The tool's MCP server, if any. */
  readonly toolServer?: string | undefined
  /** The value of the tool's `scopeKey` that it is limited to. */
  readonly scopeKey?: string | undefined
  /** ISO 8601. */
  readonly grantedAt: string
  /** ISO 8601. Absent if it never expires, as a standing denial without `expiresIn`. */
  readonly expiresAt?: string | undefined
  readonly usesLeft?: number | undefined
  /** What it is limited to, if it is narrower than the tool (see `mandates` of a tool), and how far it is used up. */
  readonly mandate?: GrantedMandate | undefined
}

/** What a mandate would have decided, had it been given before. */
export interface MandateReplay {
  /** How many of the calls had an answered approval request of the same tool. */
  readonly asked: number
  /** Those that it would have let through, or refused if it is a denial: the oldest first. */
  readonly matched: readonly {
    readonly toolCallId: string
    /** ISO 8601. */
    readonly askedAt: string
    /** What the user decided then. */
    readonly decision?: 'approve' | 'deny' | 'cancel' | 'expire'
  }[]
}

/** A standing approval or denial that a user has given. */
export interface GrantedMandate {
  /** What it allows or refuses, plain text. */
  readonly label: string
  /** It refuses calls instead of allowing them. */
  readonly decide?: 'deny' | undefined
  /** How many calls it has let through. */
  readonly used: number
  /** ISO 8601. */
  readonly lastUsedAt?: string | undefined
  readonly budget?: { readonly total: number; readonly spent: number; readonly unit: string } | undefined
  /** The id of the user who gave it. */
  readonly grantedBy: string
}

/**
 * What a tool claims about its effects (MCP annotations). Hints only: a policy may use them, but an untrusted
 * server can lie.
 */
export interface ToolAnnotations {
  readonly title?: string | undefined
  /** It changes nothing. */
  readonly readOnlyHint?: boolean | undefined
  /** It may destroy or overwrite something; meaningful only if it is not read-only. */
  readonly destructiveHint?: boolean | undefined
  /** Repeated calls with the same arguments have no further effect. */
  readonly idempotentHint?: boolean | undefined
  /** It interacts with people or systems outside the application. */
  readonly openWorldHint?: boolean | undefined
}

/** An interrupt raised by a running tool to get input from the user. */
export interface ToolQuestion<Schema extends StandardSchemaV1 = StandardSchemaV1> {
  /** The message shown to the user, plain text. */
  readonly message: string
  /** The schema of the answer, any Standard Schema. The server validates every answer. */
  readonly answer: Schema
  /** JSON Schema of the answer, for the page; required if the schema library cannot produce it. */
  readonly responseSchema?: JsonSchema | undefined
  /** Aborting withdraws the interrupt. */
  readonly signal?: AbortSignal | undefined
}

/** The outcome of {@link ToolContext.ask}, in the terms of MCP's elicitation. `reason` is text the tool can use in its result. */
export type ToolReply<Answer = unknown> =
  | { readonly action: 'accept'; readonly content: Answer }
  /** The user declined, or nobody can be asked in this run. */
  | { readonly action: 'decline'; readonly reason: string }
  /** The answer is no longer awaited. */
  | { readonly action: 'cancel'; readonly reason: string }

/** What a server may add to the reply: a data part, a source, or metadata of the message (merged key by key). */
export type WritablePart =
  /**
   * Its message has this id, or a new one. Writing an id again replaces the part in place, also in a later run of the thread. The id of any
   * other message has no effect.
   */
  | (DataPart & { readonly id?: string | undefined })
  | SourcePart
  | { readonly type: 'metadata'; readonly metadata: Readonly<Record<string, unknown>> }

/** What a running tool gets besides its input. */
export interface ToolContext extends GateContext {
  /** The call's thread and run. Absent if a plan is executed without an agent. */
  readonly threadId?: string | undefined
  readonly runId?: string | undefined
  /**
   * Whether the call was approved: by a user, once or for the session, or by the application's policy. A tool
   * that throws `ApprovalRequiredError` itself should do so only if this is `false`.
   */
  readonly approved: boolean
  readonly signal: AbortSignal
  /**
   * The approved preview, unmasked, if the tool has one: make the write conditional on it (a version, an ETag, a `WHERE` clause). Absent
   * if the call was not asked for, unless the tool sets `previewUnasked`.
   */
  readonly preview?: Preview | undefined
  /**
   * Stable across retries of one approval: pass it to any system that can deduplicate. It is the approval's id; for a call without one, a
   * hash of its user, thread, run and id. If a plan is executed without an agent, it is the given id of the approval or else of the call.
   */
  readonly idempotencyKey: string
  /**
   * Reports progress to the page while the tool runs. It does not wait for the reader: if more than 1 MiB of a run's reports
   * is unread, the run ends with `reader-too-slow`. To report more, return an async iterable, which waits for its reader.
   *
   * @throws CountersignError `invalid-argument` if `data` is not JSON.
   */
  progress(data: unknown): void
  /**
   * Adds to the reply what users see and no model gets; the conversation keeps it. It resolves when the reader has room for more, and never
   * rejects. A part may be as large as a result (`limits.resultSize`), and a run may write 1,024 data parts. After the tool has
   * ended, and if a plan is executed without an agent, nothing is written.
   *
   * @throws CountersignError `invalid-argument` at once: the part is malformed or too large, or more than 1 MiB was written without awaiting it.
   */
  write(part: WritablePart): Promise<void>
  /**
   * Asks the user for input while the tool runs, and waits for the answer. This needs a run that stays open
   * (a live channel); in any other run it resolves to `decline` at once. An invalid answer is refused, and
   * the interrupt stays open. An answer never approves a call. A `timeout` of the tool keeps running.
   */
  ask<Schema extends StandardSchemaV1>(
    question: ToolQuestion<Schema>,
  ): Promise<ToolReply<StandardSchemaV1.InferOutput<Schema>>>
}

/**
 * Runs a tool. If it throws, the call fails. For a server tool, only the message of a `ToolError` reaches the model
 * and the page; for any other error they learn only that the tool failed, and the server's log gets the error.
 */
export type Execute<Input, Output, Context> = (input: Input, context: Context) => Output | Promise<Output>

/**
 * Runs a tool on the server. If it returns an async iterable, each element is sent to the page as progress,
 * and the last one is the result, unless `finalize` builds it; the return value of a generator is ignored. A
 * stream that ends without a result has failed.
 */
export type ServerExecute<Input, Output, Context> = (
  input: Input,
  context: Context,
) => Output | Promise<Output> | AsyncIterable<Output, void>

/** A streaming tool whose result `finalize` builds. */
export type StreamingExecute<Input, Element, Context> = (
  input: Input,
  context: Context,
) => AsyncIterable<Element, void>

/** Builds the result of a streaming tool from all elements. */
export type Finalize<Element, Output> = (elements: readonly Element[]) => Output | Promise<Output>

/** The description of a tool, wherever it runs. */
export interface ToolOptions<Name extends string, Schema extends StandardSchemaV1, Output> {
  name: Name
  description: string
  /** Any Standard Schema (zod, valibot, arktype, ...). */
  input: Schema
  /**
   * The schema of the result. The server validates each result, and everyone gets the schema's output: members that
   * it strips reach neither the model nor the page. An invalid result counts as a failure of the tool, which has run.
   * A schema that transforms to another type does not work here, because it would be applied to its own output.
   */
  output?: StandardSchemaV1<unknown, Output> | undefined
  /** The tool's MCP server. A session approval does not cover a tool of the same name on another server. */
  toolServer?: string | undefined
  /** JSON Schema for the model; required if the schema library cannot produce it (`~standard.jsonSchema`). */
  parameters?: JsonSchema | undefined
  /** Sent to the server with a client tool's description (`Tool.metadata` of AG-UI). */
  metadata?: Readonly<Record<string, unknown>> | undefined
  needsApproval?: NeedsApproval<StandardSchemaV1.InferOutput<Schema>> | undefined
  /** The terms of approval as one value. `needsApproval`, `message` and `scopes` take precedence. */
  approval?: ApprovalPolicy | undefined
  /** Used by heuristics and permission levels. */
  annotations?: ToolAnnotations | undefined
  /** Whether the user may edit the arguments: all of them, or only these top-level keys. Default: no. */
  allowEdits?: boolean | readonly string[] | undefined
  /** The scopes that the user may approve. Default `['once']`. */
  scopes?: readonly ApprovalScope[] | undefined
  /**
   * Narrows a session approval: calls with another key need their own. If it returns anything but a string, a
   * finite number or a boolean, there is no key, and each call needs approval. Default: the tool's name alone.
   */
  scopeKey?: ((input: StandardSchemaV1.InferOutput<Schema>) => string | number | boolean) | undefined
  /**
   * Standing approvals (and denials) to offer with the approval request for this call, narrower than the tool: for calls that meet
   * constraints, a number of times, within a budget. At most 16. If it throws or returns anything invalid, none is offered.
   */
  mandates?:
    | ((
        input: StandardSchemaV1.InferOutput<Schema>,
        context: GateContext,
      ) => readonly MandateOffer[] | Promise<readonly MandateOffer[]>)
    | undefined
  /** Change it when calls with the same arguments come to mean something else: standing approvals given before then no longer apply. */
  version?: string | undefined
  /** Facts that an approval depends on (a file's hash, a list of recipients), read when it is requested and before the call runs. */
  bind?: ((input: StandardSchemaV1.InferOutput<Schema>, context: GateContext) => unknown) | undefined
  /**
   * What the call would do, computed when approval is requested and again right before the call starts. If it differs then, nothing
   * runs, and approval is requested again. It must only read. Values that `redact` masks are masked here too. The page has to show it.
   */
  preview?:
    | ((input: StandardSchemaV1.InferOutput<Schema>, context: PreviewContext) => Preview | Promise<Preview>)
    | undefined
  /** Computes the preview also for calls that run without an approval request: `execute` gets it. Default: no. */
  previewUnasked?: boolean | undefined
  /** Seconds until an approval request expires, or `'never'`. Default: the agent's, 24 hours. */
  expiresIn?: number | 'never' | undefined
  /** The arguments as shown, if some must be masked ({@link sanitizeArgs}). The call runs with the real ones, and the page has them too. */
  redact?: ((input: StandardSchemaV1.InferOutput<Schema>) => unknown) | undefined
  /** The message shown to the user for this call, plain text. */
  message?: string | ((input: StandardSchemaV1.InferOutput<Schema>) => string) | undefined
  /** A thrown error becomes a failed result for the model (`return`, the default) or ends the run (`throw`). */
  failureMode?: 'return' | 'throw' | undefined
  /** Whether it may run again with the same idempotency key without further harm. Default: no. */
  idempotent?: boolean | undefined
  /** Milliseconds until a running tool is aborted. Default: none. */
  timeout?: number | undefined
}

/** A tool that is described but not implemented yet. */
export interface ToolDefinition<
  Name extends string = string,
  Schema extends StandardSchemaV1 = StandardSchemaV1,
  Output = unknown,
> extends Readonly<ToolOptions<Name, Schema, Output>> {
  /** Implements it on the server. The result must match `output`, if given. */
  server<Result extends Output>(
    execute: ServerExecute<StandardSchemaV1.InferOutput<Schema>, Result, ToolContext>,
  ): ServerTool<Name, Schema, Returned<Result, Output>>
  /** The same for a streaming tool whose result is not its last element. */
  server<Element, Result extends Output>(
    execute: StreamingExecute<StandardSchemaV1.InferOutput<Schema>, Element, ToolContext>,
    finalize: Finalize<Element, Result>,
  ): ServerTool<Name, Schema, Result>
  /** Implements it on the client. The server still decides about its approval and verifies it. */
  client<Result extends Output>(
    execute: Execute<StandardSchemaV1.InferOutput<Schema>, Result, ClientToolContext>,
  ): ClientTool<Name, Schema, Returned<Result, Output>>
}

export interface ServerTool<
  Name extends string = string,
  Schema extends StandardSchemaV1 = StandardSchemaV1,
  Output = unknown,
> extends Readonly<ToolOptions<Name, Schema, unknown>> {
  readonly location: 'server'
  readonly execute: (
    input: StandardSchemaV1.InferOutput<Schema>,
    context: ToolContext,
  ) => Output | Promise<Output> | AsyncIterable<unknown, void>
  /** Builds the result of a streaming tool from its elements. Default: the last element. */
  readonly finalize?: Finalize<never, Output> | undefined
}

export interface ClientToolContext {
  readonly toolCallId: string
  readonly signal: AbortSignal
  /** The client's option `toolContext`. */
  readonly context?: unknown
}

export interface ClientTool<
  Name extends string = string,
  Schema extends StandardSchemaV1 = StandardSchemaV1,
  Output = unknown,
> extends Readonly<ToolOptions<Name, Schema, unknown>> {
  readonly location: 'client'
  readonly execute: Execute<StandardSchemaV1.InferOutput<Schema>, Output, ClientToolContext>
}

// Method syntax on purpose: tools with different inputs must be assignable to one array type.
/** Any server tool, whatever its types. */
export interface AnyServerTool extends Omit<ServerTool, keyof AnyToolMembers | 'execute'>, AnyToolMembers {
  execute(input: never, context: ToolContext): unknown
}

/** Any client tool, whatever its types. */
export interface AnyClientTool extends Omit<ClientTool, keyof AnyToolMembers | 'execute'>, AnyToolMembers {
  execute(input: never, context: ClientToolContext): unknown
}

interface AnyToolMembers {
  readonly needsApproval?:
    | boolean
    | ((input: never, context: GateContext) => boolean | Promise<boolean>)
    | undefined
  readonly scopeKey?: ((input: never) => string | number | boolean) | undefined
  readonly mandates?:
    | ((input: never, context: GateContext) => readonly MandateOffer[] | Promise<readonly MandateOffer[]>)
    | undefined
  readonly bind?: ((input: never, context: GateContext) => unknown) | undefined
  readonly redact?: ((input: never) => unknown) | undefined
  readonly preview?: ((input: never, context: PreviewContext) => Preview | Promise<Preview>) | undefined
  readonly message?: string | ((input: never) => string) | undefined
  readonly output?: StandardSchemaV1 | undefined
}

type Described = { readonly name: string; readonly input: StandardSchemaV1; readonly execute?: unknown }

/** The element type of a stream; any other type unchanged. */
type Streamed<Output> = Output extends AsyncIterable<infer Element> ? Element : Output

type OutputOf<T> = T extends { execute: (...args: never[]) => infer Out }
  ? Returned<Exclude<Awaited<Out>, AsyncIterable<unknown>>, DeclaredBy<T>>
  : DeclaredBy<T>

type DeclaredBy<T> = T extends { readonly output?: StandardSchemaV1<unknown, infer Out> | undefined }
  ? Out
  : unknown

/** The result type of a tool. If the function always throws, the declared type is used. */
type Returned<Result, Declared> = [Result] extends [never] ? Declared : Result

/** Input and output types by tool name, from a list or record of definitions: `useChat<InferTools<typeof tools>>()`. */
export type InferTools<Tools extends readonly Described[] | Readonly<Record<string, Described>>> =
  Tools extends readonly (infer T extends Described)[]
    ? { [D in T as D['name']]: { input: StandardSchemaV1.InferOutput<D['input']>; output: OutputOf<D> } }
    : Tools extends Readonly<Record<string, infer T extends Described>>
      ? { [D in T as D['name']]: { input: StandardSchemaV1.InferOutput<D['input']>; output: OutputOf<D> } }
      : never

/**
 * Describes a tool once; implement it with `.server(execute)` or `.client(execute)`. Throws `invalid-tool` if
 * the name is empty, longer than 128 characters or begins with `client.`, which is reserved.
 */
export function toolDefinition<const Name extends string, Schema extends StandardSchemaV1, Output = unknown>(
  options: ToolOptions<Name, Schema, Output>,
): ToolDefinition<Name, Schema, Output> {
  checkName(options.name)
  return {
    ...options,
    server: <Result extends Output>(
      execute: ServerTool<Name, Schema, Result>['execute'],
      finalize?: Finalize<never, Result>,
    ): ServerTool<Name, Schema, Result> => ({ ...options, location: 'server', execute, finalize }),
    client: (execute) => ({ ...options, location: 'client', execute }),
  }
}

/** A tool that runs on the server: `toolDefinition(...).server(execute, finalize)` in one step. */
export function tool<
  const Name extends string,
  Schema extends StandardSchemaV1,
  Output,
  Element = Streamed<Output>,
>(
  options: ToolOptions<Name, Schema, Output> & {
    execute: (
      input: StandardSchemaV1.InferOutput<Schema>,
      context: ToolContext,
    ) => Output | Promise<Output> | AsyncIterable<Element, void>
    /** Builds the result of a streaming tool from its elements. Default: the last element. */
    finalize?: Finalize<Element, Output> | undefined
  },
): ServerTool<Name, Schema, Streamed<Output>>
export function tool<const Name extends string, Schema extends StandardSchemaV1, Output>(
  options: ToolOptions<Name, Schema, Output> & Pick<ServerTool<Name, Schema, Output>, 'execute' | 'finalize'>,
): ServerTool<Name, Schema, Output> {
  checkName(options.name)
  return { ...options, location: 'server' }
}

/** A tool that runs in the client: `toolDefinition(...).client(execute)` in one step. */
export function clientTool<const Name extends string, Schema extends StandardSchemaV1, Output>(
  options: ToolOptions<Name, Schema, Output> & {
    execute: Execute<StandardSchemaV1.InferOutput<Schema>, Output, ClientToolContext>
  },
): ClientTool<Name, Schema, Output> {
  checkName(options.name)
  return { ...options, location: 'client' }
}

function checkName(name: string): void {
  if (typeof name !== 'string' || name === '' || name.length > 128) {
    throw new CountersignError('invalid-tool', 'A tool needs a name of 1 to 128 characters.', { name })
  }
  if (name.startsWith('client.')) {
    const message = `The tool name ${JSON.stringify(name)} is reserved: names that begin with "client." belong to Countersign. Choose another name.`
    throw new CountersignError('invalid-tool', message, { name })
  }
}
