import type { StandardSchemaV1 } from '@standard-schema/spec'
import { CountersignError } from './errors.js'
import type { ApprovalOption } from './messages.js'

/** JSON Schema of a tool's parameters, as the model gets it. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** What a decision about a call may look at beside its validated input. */
export interface GateContext {
  readonly toolCallId: string
  /** The conversation as the client sent it. **Untrusted**: a client can put anything there. */
  readonly messages: readonly unknown[]
  /** The run's own context, given by the application: `subject` (who the person is) and whatever services it needs. */
  readonly context: Readonly<Record<string, unknown>> & { readonly subject?: string | undefined }
}

/** Whether a call needs a person's yes: always, never, or as a function of its validated input. A throw means yes. */
export type NeedsApproval<Input> =
  | boolean
  | ((input: Input, context: GateContext) => boolean | Promise<boolean>)

/** What a person may choose about a call, beside no. */
export type ApprovalScope = 'once' | 'session'

/** A person's decision. How far a yes reaches is said by {@link ApprovalScope}. */
export type ApprovalDecision = 'approve' | 'deny'

/** The terms of an approval in one value: what tools of other makers are described by, such as those of an MCP server. */
export interface ApprovalPolicy {
  readonly required: boolean
  /** What the person is told, plain text. */
  readonly message?: string | undefined
  /** Default `['deny', 'once']`. */
  readonly options?: readonly ApprovalOption[] | undefined
}

/** A standing yes for the session, as a person sees it: calls of this tool in this thread run without being asked about. */
export interface SessionGrant {
  /** Names it to its owner; no secret. */
  readonly id: string
  readonly threadId: string
  readonly toolName: string
  /** The MCP server of the tool, where it has one. */
  readonly toolServer?: string | undefined
  /** What the tool's `scopeKey` narrows it to. */
  readonly scopeKey?: string | undefined
  /** ISO 8601. */
  readonly grantedAt: string
  /** ISO 8601. */
  readonly expiresAt: string
  readonly usesLeft?: number | undefined
}

/**
 * What a tool's maker says of its effects (the annotations of MCP). Hints: a policy may go by them, but a server that is not trusted
 * can lie in them.
 */
export interface ToolAnnotations {
  readonly title?: string | undefined
  /** It changes nothing. */
  readonly readOnlyHint?: boolean | undefined
  /** It may destroy or overwrite something; of meaning only where it is not read-only. */
  readonly destructiveHint?: boolean | undefined
  /** Calling it again with the same arguments does no more. */
  readonly idempotentHint?: boolean | undefined
  /** It reaches people or systems outside the application. */
  readonly openWorldHint?: boolean | undefined
}

/** Something that a running tool wants to know of the person. */
export interface ToolQuestion<Schema extends StandardSchemaV1 = StandardSchemaV1> {
  /** What the person is told, plain text. */
  readonly message: string
  /** What an answer must be, any Standard Schema. The server checks every answer by it. */
  readonly answer: Schema
  /** JSON Schema of the answer, for the page; required where the schema library cannot produce it itself. */
  readonly responseSchema?: JsonSchema | undefined
  /** Withdraws the question. */
  readonly signal?: AbortSignal | undefined
}

/** What came of a question, in the words of MCP's elicitation. `reason` is for the tool's own words. */
export type ToolReply<Answer = unknown> =
  | { readonly action: 'accept'; readonly content: Answer }
  /** The person said no, or nobody can be asked in this run. */
  | { readonly action: 'decline'; readonly reason: string }
  /** Nobody waits for the answer any more. */
  | { readonly action: 'cancel'; readonly reason: string }

/** What a running tool gets beside its input. */
export interface ToolContext extends GateContext {
  /** The conversation and the run that the call belongs to. Absent where a plan is carried out without an agent. */
  readonly threadId?: string | undefined
  readonly runId?: string | undefined
  /**
   * Whether somebody has said yes to this call: a person now or for the session, or the application's policy. A tool that throws
   * `ApprovalRequiredError` on its own account asks only where this is `false`.
   */
  readonly approved: boolean
  readonly signal: AbortSignal
  /**
   * Stable over retries of one approval: hand it to whatever can deduplicate. The approval's id; of a call that nobody was asked about, a
   * hash of its person, thread, run and id. Where a plan is carried out without an agent, the approval's id or else the call's, as they were given.
   */
  readonly idempotencyKey: string
  /**
   * Reports progress to the page while the tool runs. It does not wait: 1 MiB of a run's reports may be unread, beyond it the run ends
   * with `reader-too-slow`. A tool with much to say returns an async iterable, which waits for its reader.
   *
   * @throws CountersignError `invalid-argument` where `data` is no JSON.
   */
  progress(data: unknown): void
  /**
   * Asks the person something while the tool runs, and waits for the answer. That takes a run that stays open (a live channel); in any
   * other the reply is `decline` at once. An answer that does not fit is refused, and the question stays. An answer is never a yes to a
   * call. A `timeout` of the tool goes on meanwhile.
   */
  ask<Schema extends StandardSchemaV1>(
    question: ToolQuestion<Schema>,
  ): Promise<ToolReply<StandardSchemaV1.InferOutput<Schema>>>
}

/**
 * Runs a tool. A throw is the tool's failure. Of what a tool on the server throws, only the message of a `ToolError` reaches the model and the
 * page; of anything else they are told that the tool failed, and the server's log gets the error.
 */
export type Execute<Input, Output, Context> = (input: Input, context: Context) => Output | Promise<Output>

/**
 * Runs a tool on the server. One that returns an async iterable streams: each element goes to the page as progress when it comes,
 * and the last is the result, unless `finalize` builds it; what a generator returns counts for nothing. A stream that ends
 * without a result has failed.
 */
export type ServerExecute<Input, Output, Context> = (
  input: Input,
  context: Context,
) => Output | Promise<Output> | AsyncIterable<Output, void>

/** The stream of a tool whose result `finalize` builds. */
export type StreamingExecute<Input, Element, Context> = (
  input: Input,
  context: Context,
) => AsyncIterable<Element, void>

/** The result of a streaming tool, out of everything it streamed. */
export type Finalize<Element, Output> = (elements: readonly Element[]) => Output | Promise<Output>

/** What is said about a tool once, wherever it runs. */
export interface ToolOptions<Name extends string, Schema extends StandardSchemaV1, Output> {
  name: Name
  description: string
  /** Any Standard Schema (zod, valibot, arktype, ...). */
  input: Schema
  /**
   * What the tool answers. The server checks each result by it, and what the schema makes of the result is what everybody gets: members
   * that it leaves out reach neither the model nor the page. A result that does not fit is a failure of the tool, which has run. A schema
   * that makes another type of what it is given has no place here: it would be given its own result.
   */
  output?: StandardSchemaV1<unknown, Output> | undefined
  /** The MCP server it belongs to: a session approval is for this server's tool, and no other's of the same name. */
  toolServer?: string | undefined
  /** JSON Schema for the model; required where the schema library cannot produce it itself (`~standard.jsonSchema`). */
  parameters?: JsonSchema | undefined
  /** What goes to the server with a client tool's description (`Tool.metadata` of AG-UI). */
  metadata?: Readonly<Record<string, unknown>> | undefined
  needsApproval?: NeedsApproval<StandardSchemaV1.InferOutput<Schema>> | undefined
  /** The same terms as one value. `needsApproval`, `message` and `scopes` beat what it says. */
  approval?: ApprovalPolicy | undefined
  /** What heuristics and permission levels go by. */
  annotations?: ToolAnnotations | undefined
  /** Whether the person may edit the arguments: all of them, or only these top-level keys. Default: no. */
  allowEdits?: boolean | readonly string[] | undefined
  /** What the person may choose beside no. Default `['once']`. */
  scopes?: readonly ApprovalScope[] | undefined
  /**
   * Narrows a session grant: calls with another key ask again. Where it answers anything but text, a finite number or a boolean there is no
   * key, and each call is asked about. Default: the tool's name alone.
   */
  scopeKey?: ((input: StandardSchemaV1.InferOutput<Schema>) => string | number | boolean) | undefined
  /** Further facts an approval is bound to (a file's hash, a list of recipients): read at asking and again at running. */
  bind?: ((input: StandardSchemaV1.InferOutput<Schema>, context: GateContext) => unknown) | undefined
  /** Seconds until a request expires, or `'never'`. Default: the agent's, 24 hours. */
  expiresIn?: number | 'never' | undefined
  /** The arguments as shown where some must be masked ({@link sanitizeArgs}). Execution always uses the real ones. */
  redact?: ((input: StandardSchemaV1.InferOutput<Schema>) => unknown) | undefined
  /** What the person is told about this call, plain text. */
  message?: string | ((input: StandardSchemaV1.InferOutput<Schema>) => string) | undefined
  /** A throw becomes a failed result for the model (`return`, the default) or ends the run (`throw`). */
  failureMode?: 'return' | 'throw' | undefined
  /** Whether running it again with the same idempotency key does no further harm. Default: no. */
  idempotent?: boolean | undefined
  /** Milliseconds until a running tool is aborted. Default: none. */
  timeout?: number | undefined
}

/** A tool that is described but not placed yet. */
export interface ToolDefinition<
  Name extends string = string,
  Schema extends StandardSchemaV1 = StandardSchemaV1,
  Output = unknown,
> extends Readonly<ToolOptions<Name, Schema, Output>> {
  /** Places it on the server. What it returns is what `output` describes, where that is given. */
  server<Result extends Output>(
    execute: ServerExecute<StandardSchemaV1.InferOutput<Schema>, Result, ToolContext>,
  ): ServerTool<Name, Schema, Returned<Result, Output>>
  /** The same for a tool that streams and whose result is not its last element. */
  server<Element, Result extends Output>(
    execute: StreamingExecute<StandardSchemaV1.InferOutput<Schema>, Element, ToolContext>,
    finalize: Finalize<Element, Result>,
  ): ServerTool<Name, Schema, Result>
  /** Places it in the client. Its approval is still decided and verified on the server. */
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
  /** Builds the result of a streaming tool out of what it streamed. Default: the last element. */
  readonly finalize?: Finalize<never, Output> | undefined
}

export interface ClientToolContext {
  readonly toolCallId: string
  readonly signal: AbortSignal
}

export interface ClientTool<
  Name extends string = string,
  Schema extends StandardSchemaV1 = StandardSchemaV1,
  Output = unknown,
> extends Readonly<ToolOptions<Name, Schema, unknown>> {
  readonly location: 'client'
  readonly execute: Execute<StandardSchemaV1.InferOutput<Schema>, Output, ClientToolContext>
}

// Method syntax on purpose: a list of tools with different inputs must be assignable to one array type.
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
  readonly bind?: ((input: never, context: GateContext) => unknown) | undefined
  readonly redact?: ((input: never) => unknown) | undefined
  readonly message?: string | ((input: never) => string) | undefined
  readonly output?: StandardSchemaV1 | undefined
}

type Described = { readonly name: string; readonly input: StandardSchemaV1; readonly execute?: unknown }

/** What a stream streams; what is no stream as it is. */
type Streamed<Output> = Output extends AsyncIterable<infer Element> ? Element : Output

type OutputOf<T> = T extends { execute: (...args: never[]) => infer Out }
  ? Returned<Exclude<Awaited<Out>, AsyncIterable<unknown>>, DeclaredBy<T>>
  : DeclaredBy<T>

type DeclaredBy<T> = T extends { readonly output?: StandardSchemaV1<unknown, infer Out> | undefined }
  ? Out
  : unknown

/** What a tool gives. A function that always throws says nothing of it: then what was declared counts. */
type Returned<Result, Declared> = [Result] extends [never] ? Declared : Result

/** Input and output types by tool name, out of a list or a record of definitions: `useChat<InferTools<typeof tools>>()`. */
export type InferTools<Tools extends readonly Described[] | Readonly<Record<string, Described>>> =
  Tools extends readonly (infer T extends Described)[]
    ? { [D in T as D['name']]: { input: StandardSchemaV1.InferOutput<D['input']>; output: OutputOf<D> } }
    : Tools extends Readonly<Record<string, infer T extends Described>>
      ? { [D in T as D['name']]: { input: StandardSchemaV1.InferOutput<D['input']>; output: OutputOf<D> } }
      : never

/**
 * Describes a tool once; place it with `.server(execute)` or `.client(execute)`.
 * Throws `invalid-tool` when the name is empty, longer than 128 characters or begins with `client.`, which is reserved.
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
    /** Builds the result of a streaming tool out of what it streamed. Default: the last element. */
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
