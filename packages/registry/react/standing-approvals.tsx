'use client'

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
import { useChatClient } from '@countersign/react'
import { useMemo, useSyncExternalStore } from 'react'
import { SafeText } from './safe-text'

/** The session approvals of the chat, with buttons to revoke them. Hidden if there are none. */
export function StandingApprovals() {
  const client = useChatClient()
  const grants = useMemo(() => standingGrants(client), [client])
  const { grants: standing, problem } = useSyncExternalStore(grants.subscribe, grants.getSnapshot)
  if (standing.length === 0 && !problem) return null
  return (
    <section className="grants" aria-label="Session approvals">
      {standing.length > 0 && (
        <details
          className="grants-details"
          onToggle={({ currentTarget }) => {
            if (currentTarget.open) void grants.load()
          }}
        >
          <summary className="grants-title" id={GRANTS_TITLE_ID}>
            {grantsTitle(standing)}
          </summary>
          <ul className="grants-list">
            {standing.map((grant) => (
              <Grant key={grant.id} grant={grant} onRevoke={() => void revokeGrant(grants, grant.id)} />
            ))}
          </ul>
          {standing.length > 1 && (
            <button type="button" className="button link" onClick={() => void revokeGrant(grants)}>
              Revoke all
            </button>
          )}
        </details>
      )}
      {problem && (
        <p className="grants-problem" role="status">
          {grantsProblem(problem)}{' '}
          <button type="button" className="button link" onClick={() => void grants.load()}>
            Reload the list
          </button>
        </p>
      )}
    </section>
  )
}

function Grant({ grant, onRevoke }: { grant: SessionGrant; onRevoke: () => void }) {
  const name = grantName(grant)
  const use = grantUse(grant)
  return (
    <li className="grant">
      <span className="grant-tool">
        <SafeText text={name} />
      </span>
      {use !== '' && <span className="grant-use">{use}</span>}
      <span className="grant-since">
        since <time dateTime={grant.grantedAt}>{grantedSince(grant)}</time>
      </span>
      <button
        type="button"
        className="button link"
        aria-label={`Revoke ${displayText(name).text}`}
        onClick={onRevoke}
      >
        Revoke
      </button>
    </li>
  )
}
