export { tool, toolDefinition } from '@countersign/core'
export {
  type ApprovalPlan,
  type PlannableCall,
  type PlanPolicy,
  planApprovals,
  type Verdict,
} from './answers/plan.js'
export { isApprovalNeeded } from './gate/gate.js'
export {
  type CallSite,
  cancelAllPending,
  findUnansweredCalls,
  isReconciled,
  prepareMessagesForModel,
  withResults,
} from './history/history.js'
export { type ChatOptions, handleChat, readRunInput } from './http/http.js'
export {
  ApprovalCache,
  type ApprovalCacheEntry,
  type ApprovalCacheOptions,
  type ApprovalCacheStats,
  approvalCache,
  type CachedTool,
} from './ledger/approval-cache.js'
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
} from './ledger/ledger.js'
export { ledgerKey } from './ledger/ledger.js'
export { type MemoryLedgerOptions, memoryLedger } from './ledger/memory-ledger.js'
export { type StatelessLedgerOptions, statelessLedger } from './ledger/stateless-ledger.js'
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
} from './model/model.js'
export { type ScriptedModel, type ScriptedTurn, scriptedModel } from './model/scripted-model.js'
export { type Agent, createAgent, type GenerateResult } from './run/agent.js'
export type { RunOptions } from './run/run.js'
export type {
  AgentOptions,
  ApprovalOptions,
  ConfirmedVerdict,
  Policy,
  PolicyCall,
  PolicyDecision,
  RunContext,
} from './scope/settings.js'
export type { Secret } from './tokens/keys.js'
export { ToolkitRequiredError, ToolNotFoundError } from './tools/tool-errors.js'
export type { AgentTool } from './tools/toolkit.js'
