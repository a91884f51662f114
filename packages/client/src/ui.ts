export { announce } from './ui/announce.js'
export { type Answer, approvalOf, denial, denyAll, firstDraft, giveAnswer } from './ui/answer.js'
export { answerQuestion, questionHeadingId, showFirst, waitsForReader } from './ui/answer-question.js'
export { askedBy, askersOf } from './ui/asked-by.js'
export { copyText, textToCopy } from './ui/copy.js'
export { decisionOf, withRecord } from './ui/decision.js'
export { leaveOnEscape, showOneByOne } from './ui/dialog.js'
export {
  applyDraft,
  type Draft,
  type Edited,
  type Field,
  fieldsOf,
  textBefore,
  textOf,
} from './ui/edit-draft.js'
export { type EditSettings, fitting } from './ui/edit-fit.js'
export { type EditPreview, type EditStep, editStep, loadPreview, NO_PREVIEW } from './ui/edit-preview.js'
export { type FailureWords, failureWords, type Notice, noticeOf } from './ui/failure.js'
export {
  COMPOSER_ID,
  cardHeadingId,
  DIALOG_TITLE_ID,
  focusCard,
  focusComposer,
  focusFirstField,
  focusFirstInvalid,
  focusWhole,
  keepFocus,
  nextRequest,
  showCard,
} from './ui/focus.js'
export { type FollowedEnd, followEnd } from './ui/follow-end.js'
export { type Help, helpFor } from './ui/help.js'
export {
  grantedSince,
  grantName,
  grantsProblem,
  grantsTitle,
  grantUse,
  mandateLimits,
} from './ui/mandate-words.js'
export { markOf } from './ui/marks.js'
export { type Phase, phaseOf } from './ui/phase.js'
export { CHANGED, markOfNew, signOf } from './ui/preview-words.js'
export {
  type Choice,
  type Control,
  describedBy,
  type Faults,
  noFaults,
  noteOf,
  problemOf,
  type QuestionDraft,
  type QuestionField,
  questionFields,
  type ReadAnswer,
  readAnswer,
  rowsOf,
  typedIn,
  withoutFault,
} from './ui/question.js'
export { replayAnswer, replayQuestion } from './ui/replay.js'
export {
  answerName,
  beginningsOf,
  briefOf,
  effectiveInput,
  type Look,
  limitsOf,
  requestView,
  summaryOf,
} from './ui/request-view.js'
export { ignoreSecondClicks } from './ui/second-click.js'
export {
  GRANTS_TITLE_ID,
  type GrantsProblem,
  type GrantsSnapshot,
  revokeGrant,
  type StandingGrants,
  standingGrants,
} from './ui/standing-grants.js'
export { mayAnswerAgain, type UnsentNotice, unsentIn } from './ui/unsent.js'
export {
  badgedTitle,
  heldWords,
  hintOf,
  pendingWords,
  queuedText,
  SESSION_NOTE,
  type Standing,
  sourceOfWords,
  standingOf,
} from './ui/words.js'
