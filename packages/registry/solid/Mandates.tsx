import type { ApprovalResponse, MandateChoice } from '@countersign/client'
import { mandateLimits, replayAnswer, replayQuestion } from '@countersign/client/ui'
import { useChatClient } from '@countersign/solid'
import { createSignal, Index, Show } from 'solid-js'
import { Segments } from './SafeText.js'

interface MandatesProps {
  choices: readonly MandateChoice[]
  onAnswer: (response: ApprovalResponse) => void
}

/** Standing approvals and denials to choose instead of an answer to this call alone. */
export function Mandates(props: MandatesProps) {
  const client = useChatClient()
  const [replays, setReplays] = createSignal<Readonly<Record<string, string>>>({})
  async function replay(choice: MandateChoice) {
    const words = await replayAnswer(client(), choice)
    setReplays((known) => ({ ...known, [choice.mandate.id]: words }))
  }
  return (
    <Show when={props.choices.length > 0}>
      <ul class="mandates" aria-label="Answers for more than this call">
        <Index each={props.choices}>
          {(choice) => (
            <li class="mandate approval-choices">
              <button
                type="button"
                class={choice().mandate.decide === 'deny' ? 'button deny' : 'button'}
                disabled={choice().disabled}
                onClick={() => props.onAnswer(choice().response)}
              >
                <Segments shown={choice().label} />
              </button>
              <span class="mandate-limits">{mandateLimits(choice().mandate)}</span>
              <button type="button" class="button link" onClick={() => void replay(choice())}>
                {replayQuestion(choice())}
              </button>
              <span class="mandate-replay" role="status">
                {replays()[choice().mandate.id]}
              </span>
            </li>
          )}
        </Index>
      </ul>
    </Show>
  )
}
