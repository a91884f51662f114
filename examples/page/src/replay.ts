import type { MandateChoice } from '@countersign/client'
import { client } from './chat.js'
import { replayWords } from './grant-words.js'

/** Asks what a standing approval or denial would have decided so far, before the user chooses it. */
export function replayQuestion({ mandate }: MandateChoice): string {
  return mandate.decide === 'deny' ? 'What would it have refused?' : 'What would it have allowed?'
}

/** The server's answer, in words. */
export async function replayAnswer({ mandate, response }: MandateChoice): Promise<string> {
  const replay = await client.replayMandate(response.id, mandate.id).catch(() => undefined)
  const verb = mandate.decide === 'deny' ? 'refused' : 'allowed'
  return replay === undefined ? 'The server could not tell. Try again.' : replayWords(replay, verb)
}
