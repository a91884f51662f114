export {
  type Constraint,
  type MandateBudget,
  type MandateOffer,
  sanitizeArgs,
  tool,
  toolDefinition,
} from '@countersign/core'
export type { EditsToPreview } from './answers/preview-edits.js'
export { type AnswerChannel, memoryAnswerChannel, type Receive } from './channel/answer-channel.js'
export {
  type AnswerContext,
  type AnswerQueue,
  type AnswerQueueOptions,
  type AnswerSource,
  answerQueue,
  type Delivery,
  type DeliveryCode,
  type Take,
} from './channel/answer-queue.js'
export { type LoadedThread, loadThread, type OpenRun } from './conversation/load-thread.js'
export type { OpenThread } from './conversation/open-thread.js'
export {
  jsonDepthExceeds,
  parseStrictJson,
  type StrictJsonLimits,
  type StrictJsonProblem,
  type StrictJsonResult,
} from './encoding/strict-json.js'
export {
  ApprovalRequiredError,
  ApprovalRequiredError as ApprovalRequiredException,
  type RequiredApproval,
} from './gate/approval-required.js'
export { isApprovalNeeded } from './gate/gate.js'
export type { SessionGrants } from './gate/grants.js'
export type { ReplayRequest } from './gate/replay.js'
export {
  type CallSite,
  cancelAllPending,
  findUnansweredCalls,
  isReconciled,
  prepareMessagesForModel,
  prepareMessagesForModel as prepareMessagesForLLM,
  withResults,
} from './history/history.js'
export { assertReconciled } from './history/reconcile.js'
export { type AnswerOptions, answerResponse } from './http/answer.js'
export { handleChat } from './http/chat.js'
export { type GrantsOptions, grantsResponse } from './http/grants.js'
export { readRunInput } from './http/http.js'
export type { ServerSocket } from './http/outgoing.js'
export { previewResponse } from './http/preview.js'
export { rejoinResponse, type ThreadOptions } from './http/rejoin.js'
export type { ChatOptions, OriginRule } from './http/route-rules.js'
export { type SocketOptions, serveSocket } from './http/socket.js'
export { threadResponse } from './http/thread.js'
export {
  ApprovalCache,
  type ApprovalCacheEntry,
  type ApprovalCacheOptions,
  type ApprovalCacheStats,
  approvalCache,
  type CachedTool,
} from './ledger/approval-cache.js'
export type {
  Grant,
  GrantKey,
  GrantRequest,
  GrantResult,
  GrantSelector,
  Mandate,
  MandateCall,
  MandateTerms,
} from './ledger/grant.js'
export type {
  ApprovalEdits,
  ApprovalRecord,
  ApprovalRef,
  ApprovalScope,
  ApprovalState,
  AuditEntry,
  ClaimResult,
  CompleteResult,
  IssueResult,
  Ledger,
  LedgerAnswer,
  LedgerEntry,
  Owner,
  ReclaimResult,
  RenewResult,
  ShownTerms,
  StoredOutcome,
  ToolOutcome as RecordedOutcome,
} from './ledger/ledger.js'
export { ledgerKey } from './ledger/ledger.js'
export { type MemoryLedgerOptions, memoryLedger } from './ledger/memory-ledger.js'
export { type StatelessLedgerOptions, statelessLedger } from './ledger/stateless-ledger.js'
export type { FullLimits, FullShare, Limits, Share } from './limits.js'
export { meetsConstraints } from './mandates/constraint.js'
export type { OfferedMandates } from './mandates/offer.js'
export type {
  FinishReason,
  Model,
  ModelApprovalResponse,
  ModelEvent,
  ModelFile,
  ModelMessage,
  ModelReasoning,
  ModelRequest,
  ModelText,
  ModelTool,
  ModelToolCall,
  ModelToolResult,
  ProviderApproval,
  ProviderMetadata,
} from './model/model.js'
export type { ModelFailure } from './model/model-error.js'
export { type ScriptedModel, type ScriptedTurn, scriptedModel } from './model/scripted-model.js'
export type {
  ApprovalRefused,
  ApprovalRequested,
  ApprovalSettled,
  CallFinished,
  CallRefused,
  CallStarted,
  ModelFinished,
  ModelInput,
  ModelOutput,
  ModelStarted,
  Observe,
  RunEvent,
  RunFields,
  RunFinished,
  RunStarted,
} from './observe/events.js'
export {
  type FailureFlag,
  type FailurePayload,
  failed,
  fromResultContent,
  isSuccess,
  succeeded,
  type ToolFailure,
  type ToolOutcome,
  type ToolSuccess,
  toFailurePayload,
  toProviderText,
  toResultContent,
} from './outcome.js'
export { type Agent, createAgent, type GenerateResult, type RunEvents } from './run/agent.js'
export type { DrainOptions } from './run/drain.js'
export type { RunInput, RunOptions } from './run/run.js'
export { type MemoryRunLogOptions, memoryRunLog } from './run-log/memory-run-log.js'
export type { LoggedEvent, RunLog, RunWriter } from './run-log/run-log.js'
export type { ApprovalRequest, Confirm, ConfirmDetails, ConfirmedVerdict } from './scope/confirm.js'
export type { OutputOptions } from './scope/output.js'
export type { PermissionLevel, Policy, PolicyCall, PolicyDecision } from './scope/policy.js'
export type { PrepareStep, StepContext, StepOverrides } from './scope/prepare-step.js'
export { type Rule, rules } from './scope/rules.js'
export type { RunContext } from './scope/run-context.js'
export type { AgentOptions, ApprovalOptions, Timeouts } from './scope/settings.js'
export { type MemoryThreadsOptions, memoryThreads } from './threads/memory-threads.js'
export type {
  AppendResult,
  HoldResult,
  InterruptedRun,
  RunHold,
  RunUsage,
  StoredMessage,
  StoredThread,
  ThreadChange,
  ThreadFull,
  ThreadKey,
  ThreadLimit,
  ThreadLimits,
  ThreadPage,
  ThreadRun,
  ThreadStore,
  ThreadSummary,
} from './threads/thread-store.js'
export type { Secret } from './tokens/keys.js'
export { type AgentMethod, ToolError, ToolkitRequiredError, ToolNotFoundError } from './tools/tool-errors.js'
export type { AgentTool } from './tools/toolkit.js'
