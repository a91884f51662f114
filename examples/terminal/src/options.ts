import { parseArgs } from 'node:util'

/** The parsed command line. */
export type Command =
  | { readonly kind: 'help' }
  | { readonly kind: 'chat'; readonly settings: Settings }
  /** `message` says what is wrong and what to do instead. */
  | { readonly kind: 'invalid'; readonly message: string }

export interface Settings {
  readonly agent: AgentPlace
  /** One message instead of a conversation. */
  readonly once: string | undefined
  /** The tools whose calls are approved once each without a terminal. */
  readonly yesTo: ReadonlySet<string>
}

export type AgentPlace =
  | { readonly kind: 'server'; readonly url: string }
  /** The demo's agent in this process. Without a folder it uses its own. */
  | { readonly kind: 'here'; readonly folder: string | undefined }

const options = {
  url: { type: 'string' },
  folder: { type: 'string' },
  once: { type: 'string' },
  'yes-to': { type: 'string', multiple: true },
  help: { type: 'boolean', short: 'h' },
} as const

/** Parses the arguments after the program's name. */
export function parseCommand(args: readonly string[]): Command {
  try {
    const { values } = parseArgs({ args: [...args], options })
    if (values.help) return { kind: 'help' }
    return readValues(values.url, values.folder, values.once, values['yes-to'] ?? [])
  } catch (error) {
    return invalid(error instanceof Error ? error.message : String(error))
  }
}

function readValues(
  url: string | undefined,
  folder: string | undefined,
  once: string | undefined,
  yesTo: readonly string[],
): Command {
  if (url !== undefined && folder !== undefined)
    return invalid('Use either --folder, for the agent in this process, or --url, for an agent on a server.')
  if (url !== undefined && !isWebAddress(url))
    return invalid(`--url must be the HTTP address of a chat endpoint, such as ${EXAMPLE_URL}.`)
  if (folder === '') return invalid('--folder must name a folder.')
  if (once?.trim() === '') return invalid('--once must be a message.')
  if (yesTo.some((tool) => tool.trim() === '')) return invalid('--yes-to must name a tool.')
  const agent: AgentPlace = url === undefined ? { kind: 'here', folder } : { kind: 'server', url }
  return { kind: 'chat', settings: { agent, once, yesTo: new Set(yesTo) } }
}

const EXAMPLE_URL = 'http://localhost:5173/api/chat'

const invalid = (message: string): Command => ({ kind: 'invalid', message })

function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

export const helpText = `The chat in a terminal. You approve or deny tool calls here.

  --url <address>    the chat endpoint of a running server, such as ${EXAMPLE_URL}
  --folder <path>    without --url: the folder that the demo's tools work on
  --once <message>   send this one message and exit
  --yes-to <tool>    without a terminal: approve calls of this tool (repeatable)
  --help             show this help

If the input or the output is not a terminal, each input line is a message, never an answer, and every approval
request is denied, except for tools named with --yes-to. In a terminal, --yes-to has no effect.

Exit codes: 0 success, 1 a run failed, 2 invalid arguments, 3 a call was denied because there was no terminal to
ask in, 130 interrupted.
`
