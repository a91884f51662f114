import {
  type ChatClient,
  type ChatClientOptions,
  type ChatSnapshot,
  type FinishedInfo,
  type InferTools,
  previewEdits,
  type Turn,
  toolDefinition,
  turnsOf,
  type UIMessage,
  type WithOutput,
} from '@countersign/client'
import {
  answerQuestion,
  decisionOf,
  denyAll,
  firstDraft,
  giveAnswer,
  loadPreview,
  noticeOf,
  showOneByOne,
} from '@countersign/client/ui'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

const remove = toolDefinition({
  name: 'remove',
  description: 'Deletes a file.',
  input: z.object({ path: z.string() }),
}).client(() => 1)
const locate = toolDefinition({
  name: 'locate',
  description: 'Where the user is.',
  input: z.object({ precise: z.boolean() }),
}).client(() => 'here')
const trip = z.object({ city: z.string() })

type Typed = InferTools<[typeof remove, typeof locate]>
type Whole = Typed & WithOutput<typeof trip>

declare const save: (messages: readonly UIMessage[]) => void
declare const show: (turn: Turn) => void
declare const look: (snapshot: ChatSnapshot) => void
declare const finished: (info: FinishedInfo) => void
declare const dialog: HTMLDialogElement

// What a typed chat gives is accepted wherever no tools are named.
function pass<Tools extends Typed>(messages: readonly UIMessage<Tools>[]): readonly Turn<Tools>[] {
  return turnsOf(messages)
}
export function givenOn(
  client: ChatClient<Typed>,
  whole: ChatClient<Whole>,
  info: FinishedInfo<Whole>,
): void {
  const snapshot = client.getSnapshot()
  save(snapshot.messages)
  save(whole.getSnapshot().messages)
  for (const turn of pass(snapshot.messages)) show(turn)
  for (const turn of turnsOf(whole.getSnapshot().messages)) show(turn)
  look(snapshot)
  look(whole.getSnapshot())
  finished(info)
  noticeOf(snapshot)
  for (const call of snapshot.pendingApprovals) {
    void giveAnswer(client, call, { approved: true })
    firstDraft(client, call)
    decisionOf(call, snapshot.messages)
    void loadPreview(client, {}, call, {}, () => {})
    void previewEdits('/preview', client, { id: call.approval.id, input: {} })
  }
  denyAll(client)
  void answerQuestion(client, { id: 'q', cancel: true })
  showOneByOne(client, dialog, () => {})
  // @ts-expect-error other tools than these
  const other: UIMessage<InferTools<[typeof locate]>> | undefined = snapshot.messages[0]
  return void other
}

// `name` narrows `input`, also of a call that the application answers itself.
export const options: Pick<ChatClientOptions<Typed>, 'onToolCall'> = {
  onToolCall: (call) => {
    if (call.name === 'locate') expectTypeOf(call.input).toEqualTypeOf<{ precise: boolean } | undefined>()
    else expectTypeOf(call.input).toEqualTypeOf<{ path: string } | undefined>()
  },
}
