import type { MandateReplay } from '@countersign/core'
import type { MandateChoice } from '../approval-view.js'
import type { ChatClient } from '../client.js'

/** Asks what a standing approval or denial would have decided so far, before the user chooses it. */
export function replayQuestion({ mandate }: MandateChoice): string {
  return mandate.decide === 'deny' ? 'What would it have refused?' : 'What would it have allowed?'
}

/** The server's answer, in words. */
export async function replayAnswer(
  client: Pick<ChatClient, 'replayMandate'>,
  { mandate, response }: MandateChoice,
): Promise<string> {
  const replay = await client.replayMandate(response.id, mandate.id).catch(() => undefined)
  const verb = mandate.decide === 'deny' ? 'refused' : 'allowed'
  return replay === undefined ? 'The server could not tell. Try again.' : replayWords(replay, verb)
}

/** What a mandate would have decided so far. */
function replayWords({ asked, matched }: MandateReplay, verb: 'allowed' | 'refused'): string {
  if (asked === 0) return 'There is no earlier request of this kind in this chat.'
  return `Of ${asked} earlier ${asked === 1 ? 'request' : 'requests'} in this chat, it would have ${verb} ${matched.length}.`
}
