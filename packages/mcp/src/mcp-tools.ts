import { CountersignError } from '@countersign/core'
import { createBounded } from './bounded.js'
import { callTool } from './call.js'
import { startClock } from './call-clock.js'
import { createCatalogue } from './catalogue.js'
import { type Connection, type ConnectionOptions, givenConnection, ownConnection } from './connection.js'
import { answerElicitation, type Elicit } from './elicitation.js'
import { toolChanged } from './failure.js'
import { createOpenCalls } from './open-calls.js'
import { isClient, type McpSource } from './source.js'
import { checkServerName } from './tool-name.js'
import type { ConversionOptions, McpTool } from './tools.js'

/** Options of {@link mcpTools}. */
export interface McpToolsOptions extends Omit<ConversionOptions, 'bounded'> {
  /**
   * The application's name for the server: letters, digits, `-` and single `_`. Tools are named `mcp__server__tool`, so approvals
   * and grants of two servers never meet. What a server calls itself counts for nothing.
   */
  readonly server: string
  /** Which tools are taken. Default: all. */
  readonly include?: ConversionOptions['include']
  /** Another last part of a tool's name, for one that providers of models do not take. */
  readonly rename?: ConversionOptions['rename']
  /** The application's own terms for a tool; they beat what its annotations lead to. */
  readonly configure?: ConversionOptions['configure']
  /**
   * What the server's annotations are good for. A server can lie in them, so of themselves they let nothing run: every call is asked
   * about, unless a list names the tool (as the server calls it) and its annotations say that it stays inside (`openWorldHint: false`) and
   * only reads, or destroys nothing. `true` shows annotations to policies and pages; so does a list, for all tools. `false` hides
   * them. Default `true`.
   *
   * @example trustAnnotations: ['measure_files', 'find_duplicates']
   */
  readonly trustAnnotations?: boolean | readonly string[] | undefined
  /** What the model and the page get of a result. Default: the result's content parts as they are. */
  readonly result?: ConversionOptions['result']
  /**
   * Checks arguments and results against a tool's JSON Schema. Default: the SDK's Ajv, a separate one for each tool. A check is stopped
   * after 500 ms, and refuses then; all of a server have 5 s together, and a tenth of the time for long.
   */
  readonly validator?: ConversionOptions['validator']
  /** Milliseconds that a call may take without progress. Default 60,000. */
  readonly timeout?: number | undefined
  /** Milliseconds that a call may take in all. Default: as long as there is progress. */
  readonly maxTimeout?: number | undefined
  /** Milliseconds for connecting and for reading the list of tools, each. Default 30,000. */
  readonly connectTimeout?: number | undefined
  /** The server's list is another; agents are to be built with `tools` from now on. */
  readonly onToolsChanged?: ((tools: readonly McpTool[]) => void) | undefined
  /**
   * Puts a question of the server to the person. Default: it is asked in the run of the call that is open, as an interrupt over the
   * live channel, and declined where there is none. Of no use with a client of the application's own.
   */
  readonly elicit?: Elicit | undefined
  /** Default `console.warn`. */
  readonly warn?: ((message: string, error?: unknown) => void) | undefined
}

/** The tools of one MCP server, and the connection to it. */
export interface McpTools {
  readonly server: string
  /** As the server lists them now. A call of one that it has changed since does not run. */
  readonly tools: readonly McpTool[]
  /**
   * Reads the list again.
   *
   * @throws CountersignError `connection-failed` or `disposed`.
   */
  refresh(): Promise<readonly McpTool[]>
  /** Ends the connection and, where it was started here, the server. A client of the application's own stays open. */
  dispose(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * The tools of an MCP server as tools for `createAgent`. Every call is asked about, but for tools that `trustAnnotations` names or
 * `configure` says otherwise of. Where the server went away, a call connects again first; a call that was under way then has failed.
 *
 * @throws CountersignError `invalid-option`; `connection-failed` where the server cannot be reached; `invalid-tool` for a tool whose
 * name or schema cannot be used.
 *
 * @example
 * const files = await mcpTools({ command: 'node', args: ['files-server.js'] }, { server: 'files' })
 * const agent = createAgent({ model, tools: [...files.tools, ...others] })
 */
export async function mcpTools(source: McpSource, options: McpToolsOptions): Promise<McpTools> {
  const {
    server,
    timeout = 60_000,
    maxTimeout,
    connectTimeout = 30_000,
    elicit,
    validator,
    warn = console.warn,
  } = options
  const calls = createOpenCalls()
  const bounded = createBounded()
  checkServerName(server)
  checkTimes({ timeout, maxTimeout, connectTimeout })

  const catalogue = createCatalogue(
    { ...options, bounded, connectTimeout, warn },
    async (tool, input, context) => {
      const client = await connection.ready()
      const named = { server, tool: tool.name }
      if (!catalogue.holds(tool)) throw toolChanged(named)
      const call = { context, clock: startClock({ timeout, maxTimeout }) }
      return calls.during(call, () => callTool(client, named, input, call))
    },
  )
  const about: ConnectionOptions = {
    ...{ server, connectTimeout },
    asked: (question, signal) =>
      answerElicitation(question, signal, { server, calls, elicit, validator, bounded, warn }),
    opened: catalogue.read,
    changed: (client) => {
      catalogue
        .read(client)
        .catch((error: unknown) => warn(`The changed tools of ${server} could not be read.`, error))
    },
  }
  const connection: Connection = isClient(source)
    ? givenConnection(source, about)
    : ownConnection(source, about)

  try {
    await connection.ready()
  } catch (error) {
    await connection.close()
    throw error
  }
  return {
    server,
    get tools() {
      return catalogue.tools
    },
    async refresh() {
      await catalogue.read(await connection.ready())
      return catalogue.tools
    },
    dispose: connection.close,
    [Symbol.asyncDispose]: connection.close,
  }
}

function checkTimes(times: Readonly<Record<string, number | undefined>>): void {
  for (const [option, value] of Object.entries(times)) {
    if (value === undefined || (Number.isFinite(value) && value > 0)) continue
    throw new CountersignError('invalid-option', `${option} must be a positive number of milliseconds.`, {
      option,
      value,
    })
  }
}
