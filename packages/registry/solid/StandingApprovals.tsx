import {
  GRANTS_TITLE_ID,
  grantedSince,
  grantName,
  grantsProblem,
  grantsTitle,
  grantUse,
  revokeGrant,
  standingGrants,
} from '@countersign/client/ui'
import { displayText, type SessionGrant } from '@countersign/core'
import { useChatClient } from '@countersign/solid'
import { createMemo, For, Show } from 'solid-js'
import { fromStore } from './fromStore.js'
import { SafeText } from './SafeText.js'

/** The session approvals of the chat, with buttons to revoke them. Hidden if there are none. */
export function StandingApprovals() {
  const client = useChatClient()
  const grants = createMemo(() => standingGrants(client()))
  const snapshot = fromStore(grants)
  const standing = () => snapshot().grants
  const loadWhenOpened = (event: { currentTarget: HTMLDetailsElement }) => {
    if (event.currentTarget.open) void grants().load()
  }
  return (
    <Show when={standing().length > 0 || snapshot().problem}>
      <section class="grants" aria-label="Session approvals">
        <Show when={standing().length > 0}>
          <details class="grants-details" onToggle={loadWhenOpened}>
            <summary class="grants-title" id={GRANTS_TITLE_ID}>
              {grantsTitle(standing())}
            </summary>
            <ul class="grants-list">
              <For each={standing()}>
                {(grant) => <Grant grant={grant} onRevoke={() => void revokeGrant(grants(), grant.id)} />}
              </For>
            </ul>
            <Show when={standing().length > 1}>
              <button type="button" class="button link" onClick={() => void revokeGrant(grants())}>
                Revoke all
              </button>
            </Show>
          </details>
        </Show>
        <Show when={snapshot().problem}>
          {(problem) => (
            <p class="grants-problem" role="status">
              {grantsProblem(problem())}{' '}
              <button type="button" class="button link" onClick={() => void grants().load()}>
                Reload the list
              </button>
            </p>
          )}
        </Show>
      </section>
    </Show>
  )
}

function Grant(props: { grant: SessionGrant; onRevoke: () => void }) {
  const name = () => grantName(props.grant)
  return (
    <li class="grant">
      <span class="grant-tool">
        <SafeText text={name()} />
      </span>
      <Show when={grantUse(props.grant)}>
        <span class="grant-use">{grantUse(props.grant)}</span>
      </Show>
      <span class="grant-since">
        since <time dateTime={props.grant.grantedAt}>{grantedSince(props.grant)}</time>
      </span>
      <button
        type="button"
        class="button link"
        aria-label={`Revoke ${displayText(name()).text}`}
        onClick={() => props.onRevoke()}
      >
        Revoke
      </button>
    </li>
  )
}
