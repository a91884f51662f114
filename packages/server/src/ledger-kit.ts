/** What a ledger of one's own is made of: the decisions about one row or one grant as pure steps. Storing them is the ledger's part. */
export { isLive, matches, newGrant, takeGrant } from './ledger/grant-row.js'
export {
  claimRow,
  completeRow,
  joinState,
  keptUntil,
  type RowStep,
  reclaimRow,
  renewRow,
  type StateTexts,
  sameRecord,
  splitState,
  stateAt,
} from './ledger/ledger-row.js'
export { type BoundedOutcome, boundOutcome } from './ledger/outcome.js'
