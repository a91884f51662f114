import type { ApprovalView } from '@countersign/client'
import {
  type Answer,
  approvalOf,
  denial,
  type EditSettings,
  firstDraft,
  focusCard,
  giveAnswer,
  requestView,
} from '@countersign/client/ui'
import type { ToolCallPart } from '@countersign/core'
import { useChatClient } from '@countersign/solid'
import { createMemo, createSignal, Match, Show, Switch } from 'solid-js'
import { ApprovalChoices } from './ApprovalChoices.js'
import { Arguments } from './Arguments.js'
import { AskedBy } from './AskedBy.js'
import { DenyForm } from './DenyForm.js'
import { EditForm } from './EditForm.js'
import { Expiry } from './Expiry.js'
import { Help } from './Help.js'
import { MaskedNote } from './MaskedNote.js'
import { Preview } from './Preview.js'
import { ServerWords } from './ServerWords.js'

interface ApprovalCardProps {
  part: ToolCallPart
  /** Which edits fit, and where they are previewed. Default: both are left to the server. */
  edits?: EditSettings | undefined
  /** Called after each answer: with a message for the user if it came too late. The request is gone by then. */
  onLate?: (told: string | undefined) => void
}

/** An approval request: what would run, the server's message about it, and the choices. */
export function ApprovalCard(props: ApprovalCardProps) {
  const client = useChatClient()
  const [mode, setMode] = createSignal<'choose' | 'deny' | 'edit'>('choose')
  const [expanded, setExpanded] = createSignal(false)
  const [exact, setExact] = createSignal(false)
  // Both are kept here, so that switching forms loses nothing.
  const [reason, setReason] = createSignal('')
  const [draft, setDraft] = createSignal(firstDraft(client(), props.part))

  const isMasked = () => props.part.approval?.display !== undefined
  const view = createMemo(() =>
    requestView(props.part, { expanded: expanded(), exact: exact(), fields: true }),
  )

  async function answer(given: Answer) {
    const { onLate } = props
    const late = await giveAnswer(client(), props.part, given)
    onLate?.(late)
  }

  function back() {
    // The focused field disappears with its form.
    focusCard(props.part)
    setMode('choose')
  }

  return (
    <Show when={view()}>
      {(view) => (
        <div class="approval">
          <AskedBy askers={view().askedBy} />
          <Show when={view().message}>
            {(message) => <ServerWords message={message()} isEditing={mode() === 'edit'} />}
          </Show>
          <Show when={mode() !== 'edit' && view().preview}>
            {(preview) => <Preview view={preview()} expanded={expanded()} />}
          </Show>
          <Show when={mode() !== 'edit'}>
            <Arguments
              fields={view().arguments?.fields ?? []}
              hidden={view().hidden}
              suspicious={view().suspicious}
              expanded={expanded()}
              onExpand={() => setExpanded(true)}
            />
          </Show>
          <Show when={isMasked()}>
            <MaskedNote exact={exact()} onToggle={() => setExact(!exact())} />
          </Show>
          <Help part={props.part} />
          <Switch
            fallback={
              <ApprovalChoices
                part={props.part}
                view={view()}
                onAnswer={(given) => void answer(given)}
                onEdit={() => setMode('edit')}
                onDeny={() => setMode('deny')}
              />
            }
          >
            <Match when={props.part.approval?.problem}>{null}</Match>
            <Match when={mode() === 'deny'}>
              <DenyForm
                reason={reason()}
                onChange={setReason}
                onDeny={() => void answer(denial(reason()))}
                onBack={back}
              />
            </Match>
            <Match when={mode() === 'edit'}>
              <EditForm
                part={props.part}
                edits={props.edits ?? {}}
                disabled={!canEdit(view())}
                draft={draft()}
                onChange={setDraft}
                onApprove={(input, edited) => void answer(approvalOf(input, edited))}
                onBack={back}
              />
            </Match>
          </Switch>
          <Show when={props.part.approval?.expiresAt}>{(at) => <Expiry at={at()} />}</Show>
        </div>
      )}
    </Show>
  )
}

function canEdit({ edit }: ApprovalView): boolean {
  return edit.status === 'offered' && !edit.disabled
}
