// All attacks, by family.
import { answers } from './families/answers.mjs'
import { doors } from './families/doors.mjs'
import { http } from './families/http.mjs'
import { live } from './families/live.mjs'
import { mandates } from './families/mandates.mjs'
import { fromModel } from './families/model.mjs'
import { owners } from './families/owners.mjs'
import { previews } from './families/previews.mjs'
import { questions } from './families/questions.mjs'
import { processes, replay } from './families/replay.mjs'
import { sdk } from './families/sdk.mjs'
import { settled } from './families/settled.mjs'
import { sockets } from './families/sockets.mjs'
import { spelling } from './families/spelling.mjs'
import { tokens } from './families/tokens.mjs'
import { transport } from './families/transport.mjs'

export const families = [
  { family: 'tokens', attacks: tokens },
  { family: 'answers', attacks: answers },
  { family: 'replay and races', attacks: replay },
  { family: 'several processes', attacks: processes },
  { family: 'owners', attacks: owners },
  { family: 'live runs', attacks: live },
  { family: 'settled calls', attacks: settled },
  { family: 'mandates', attacks: mandates },
  { family: 'other doors', attacks: doors },
  { family: 'model and history', attacks: fromModel },
  { family: 'requests', attacks: http },
  { family: 'AI SDK', attacks: sdk },
  { family: 'questions of tools', attacks: questions },
  { family: 'previews', attacks: previews },
  { family: 'other spellings', attacks: spelling },
  { family: 'odd requests', attacks: transport },
  { family: 'sockets', attacks: sockets },
]
