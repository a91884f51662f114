import { createBounded } from './bounded.js'
import { callTool } from './call.js'
import { startClock } from './call-clock.js'
import { createCatalogue } from './catalogue.js'
import { checkPositive } from './check-positive.js'
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
   * and grants of different servers are separate. The server's own name is ignored.
   */
  readonly server: string
  /** Selects tools. Default: all. */
  readonly include?: ConversionOptions['include']
  /** Replaces the last part of a tool's name, if model providers don't accept it. */
  readonly rename?: ConversionOptions['rename']
  /** The application's own terms for a tool; they override those derived from its annotations. */
  readonly configure?: ConversionOptions['configure']
  /**
   * How far to trust the server's annotations. A server can lie in them, so by themselves they let nothing run: every call needs
   * approval, unless a list names the tool (by the server's name for it) and its annotations claim that it is closed-world
   * (`openWorldHint: false`), and read-only or not destructive. `true` shows annotations to policies and pages; so does a list, for all
   * tools. `false` hides them. Default `true`.
   *
   * @example trustAnnotations: ['measure_files', 'find_duplicates']
   */
  readonly trustAnnotations?: boolean | readonly string[] | undefined
  /** Converts a result for the model and the page. Default: the result's content parts unchanged. */
  readonly result?: ConversionOptions['result']
  /**
   * Validates arguments and results with a tool's JSON Schema. Default: the SDK's Ajv, one instance per tool. A validation is stopped
   * after 500 ms and then fails; all validations of a server have 5 s in a row, and a tenth of the time in the long run.
   */
  readonly validator?: ConversionOptions['validator']
  /** Milliseconds that a call may take without progress. Default 60,000. */
  readonly timeout?: number | undefined
  /** Milliseconds that a call may take in total. Default: as long as there is progress. */
  readonly maxTimeout?: number | undefined
  /** Milliseconds for connecting and for reading the list of tools, each. Default 30,000. */
  readonly connectTimeout?: number | undefined
  /** Called when the server's list has changed; build agents with the new `tools` from now on. */
  readonly onToolsChanged?: ((tools: readonly McpTool[]) => void) | undefined
  /**
   * Shows an elicitation of the server to the user. Default: it is asked in the run of the open call, as an interrupt over the
   * live channel, and declined without one. Has no effect with the application's own client.
   */
  readonly elicit?: Elicit | undefined
  /** Default `console.warn`. */
  readonly warn?: ((message: string, error?: unknown) => void) | undefined
}

/** The tools of one MCP server, and the connection to it. */
export interface McpTools {
  readonly server: string
  /** The server's current list. If the server has changed a tool since it was listed, its calls do not run. */
  readonly tools: readonly McpTool[]
  /**
   * Reads the list again.
   *
   * @throws CountersignError `connection-failed` or `disposed`.
   */
  refresh(): Promise<readonly McpTool[]>
  /** Closes the connection and, if it was started here, the server. The application's own client stays open. */
  dispose(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * The tools of an MCP server as tools for `createAgent`. Every call needs approval, except for tools that `trustAnnotations` names or
 * `configure` exempts. If the server went away, the next call reconnects first; a call that was running has failed.
 *
 * @throws CountersignError `invalid-option`; `connection-failed` if the server can't be reached; `invalid-tool` for a tool whose
 * name or schema can't be used.
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
  checkPositive({ timeout, maxTimeout, connectTimeout }, 'milliseconds')

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
