import { ChatClient, previewEdits } from '@countersign/client'
import { displayText } from '@countersign/core'
import { reach } from './agent.js'
import { type Decide, decideUnasked } from './decide.js'
import type { Ending } from './exit-code.js'
import { onInterrupt } from './interrupt.js'
import { onlyMessage, pipedMessages, type Said, typedMessages } from './messages.js'
import type { Settings } from './options.js'
import { askPerson } from './person.js'
import { renderRequest } from './request-card.js'
import { showOn } from './screen.js'
import { listStanding, revokeStanding } from './standing.js'
import { type PreviewEdits, takeTurn } from './turn.js'

const WIDTH_WITHOUT_TERMINAL = 100

/** `person`: a user can read requests and answer them. `nobody`: the input or the output is not a terminal. */
type Company = 'person' | 'nobody'

/** Runs the conversation of one invocation of the program. */
export async function chat(settings: Settings): Promise<Ending> {
  const company = process.stdin.isTTY && process.stdout.isTTY ? 'person' : 'nobody'
  const { connection, place, edits } = await reach(settings.agent)
  const client = new ChatClient({ connection, onWarning: () => {} })
  const write = showOn(process.stdout, client)
  if (settings.once === undefined) write(`Countersign in a terminal: ${displayText(place).text}\n`)
  const preview: PreviewEdits = (edited) => previewEdits(edits.url, client, edited, edits.options)
  const said = messagesOf(settings, company)
  const decide = deciderFor(company, settings, write)
  // a user who keeps talking saw what failed; a script has only the exit code
  if (company === 'person' && settings.once === undefined) return talk(client, said, decide, write, preview)
  return work(client, said, decide, company === 'nobody' && settings.once === undefined, write)
}

function messagesOf({ once }: Settings, company: Company): AsyncIterable<Said> {
  if (once !== undefined) return onlyMessage(once)
  return company === 'person' ? typedMessages() : pipedMessages()
}

function deciderFor(company: Company, { yesTo }: Settings, write: (text: string) => void): Decide {
  if (company === 'person') return (request) => askPerson(request, write)
  return async (request) => {
    write(renderRequest(request.view, request, WIDTH_WITHOUT_TERMINAL))
    return decideUnasked(request, yesTo)
  }
}

/** A conversation that lasts until the user leaves. */
async function talk(
  client: ChatClient,
  messages: AsyncIterable<Said>,
  decide: Decide,
  write: (text: string) => void,
  preview: PreviewEdits,
): Promise<Ending> {
  const interrupt = onInterrupt(client.stop)
  let interrupted = false
  for await (const said of messages) {
    interrupted = said.kind === 'interrupted'
    if (interrupted || said.kind === 'quit') break
    if (said.kind === 'standing') {
      write(await listStanding(client))
      continue
    }
    if (said.kind === 'revoke') {
      write(await revokeStanding(client, said.at))
      continue
    }
    const turn = await takeTurn(client, () => say(client, said), decide, write, preview)
    if (interrupt.taken()) write('Stopped.\n')
    if (turn.failed) write('Type /retry to try again.\n')
  }
  interrupt.dispose()
  return { interrupted, failed: false, deniedUnasked: 0 }
}

/** Sends messages that are already known, one after the other. */
async function work(
  client: ChatClient,
  messages: AsyncIterable<Said>,
  decide: Decide,
  echo: boolean,
  write: (text: string) => void,
): Promise<Ending> {
  const interrupt = onInterrupt(client.stop)
  const ending = { interrupted: false, failed: false, deniedUnasked: 0 }
  for await (const said of messages) {
    if (said.kind === 'quit') break
    if (echo && said.kind === 'message') write(`\n> ${displayText(said.text).text}\n`)
    const turn = await takeTurn(client, () => say(client, said), decide, write)
    ending.failed ||= turn.failed
    ending.deniedUnasked += turn.deniedUnasked
    ending.interrupted = interrupt.taken()
    if (ending.interrupted) break
  }
  interrupt.dispose()
  return ending
}

async function say(client: ChatClient, said: Said): Promise<void> {
  if (said.kind === 'message') await client.sendMessage(said.text)
  if (said.kind === 'retry') await client.retry()
}
