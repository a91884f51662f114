/** What must hold after every step, by the number it has in the design, and what a user is told of an act (`results`). */
export const invariants = {
  single: '1. At most one stream is open per client.',
  delivered:
    '2. Every accepted answer reaches the server in exactly one `resume`, repeated only by retry, unchanged.',
  something: '3. No automatic request without something new.',
  sibling: '4. No continuation while an approval of that turn is unanswered.',
  consistent: '5. What was sent equals what the view shows and never changes afterwards.',
  forward:
    '6. Tool states only move forward; text only grows, until a retry takes back what the failed run left unfinished.',
  quiet: '7. After stop() nothing is sent and nothing late is applied until the user acts.',
  messages: '8. Every user message reaches the server once, in order, or is visibly refused.',
  settles: '9. It settles; the status ends ready, awaiting-approval or error.',
  rejection: '10. No unhandled rejection.',
  identity: '11. An untouched message is the same object.',
  once: '12. A tool runs at most once per approval.',
  results: '13. What the model sees never has two results for one call.',
  person: '14. A stream never sets `approved` of an open call; nobody but the user answers.',
  order: 'Answers go out before the queue.',
  told: 'Whoever acts is told what became of it: every act settles, with the right status.',
} as const

export type Invariant = keyof typeof invariants

/** An invariant that did not hold, and how. */
export interface Violation {
  readonly invariant: Invariant
  readonly why: string
}
