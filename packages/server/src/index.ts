export { tool, toolDefinition } from '@countersign/core'
export { type Agent, createAgent, type GenerateResult } from './agent.js'
export {
  ApprovalCache,
  type ApprovalCacheEntry,
  type ApprovalCacheOptions,
  type ApprovalCacheStats,
  approvalCache,
  type CachedTool,
} from './approval-cache.js'
export { isApprovalNeeded, type Policy, type PolicyCall, type PolicyDecision } from './gate.js'
export {
  type CallSite,
  cancelAllPending,
  findUnansweredCalls,
  isReconciled,
  prepareMessagesForModel,
  withResults,
} from './history.js'
export { type ChatOptions, handleChat, readRunInput } from './http.js'
export type { Secret } from './keys.js'
export type {
  ApprovalEdits,
  ApprovalRecord,
  ApprovalRef,
  ApprovalScope,
  ApprovalState,
  AuditEntry,
  ClaimResult,
  CompleteResult,
  Grant,
  GrantKey,
  GrantRequest,
  GrantResult,
  GrantSelector,
  IssueResult,
  Ledger,
  LedgerAnswer,
  LedgerEntry,
  Owner,
  ReclaimResult,
  RenewResult,
  StoredOutcome,
  ToolOutcome as RecordedOutcome,
} from './ledger.js'
export { ledgerKey } from './ledger.js'
export { type MemoryLedgerOptions, memoryLedger } from './memory-ledger.js'
export type {
  FinishReason,
  Model,
  ModelEvent,
  ModelFile,
  ModelMessage,
  ModelReasoning,
  ModelRequest,
  ModelText,
  ModelTool,
  ModelToolCall,
  ModelToolResult,
  ProviderMetadata,
} from './model.js'
export {
  type ApprovalPlan,
  type PlannableCall,
  type PlanPolicy,
  planApprovals,
  type Verdict,
} from './plan.js'
export type { RunOptions } from './run.js'
export { type ScriptedModel, type ScriptedTurn, scriptedModel } from './scripted-model.js'
export type { AgentOptions, ApprovalOptions, ConfirmedVerdict, RunContext } from './settings.js'
export { type StatelessLedgerOptions, statelessLedger } from './stateless-ledger.js'
export { ToolkitRequiredError, ToolNotFoundError } from './tool-errors.js'
export type { AgentTool } from './toolkit.js'
