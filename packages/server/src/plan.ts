/** For applications that drive a model themselves, and under the names that readers of other systems look for. */

export {
  type CollectedApproval,
  type CollectOptions,
  collectToolApprovals,
  createDenialResults,
} from './plan/collect.js'
export {
  type ApprovalRequestedEvent,
  drainOutputs,
  isApprovalRequested,
  isToolOutput,
  isToolProgress,
  matchPlanEvent,
  type PlanEvent,
  type ToolOutputEvent,
  type ToolProgressEvent,
} from './plan/events.js'
export { executeApprovedToolCalls } from './plan/execute-approved.js'
export {
  type DescribedTool,
  generateApprovalMessage,
  type HeuristicOptions,
  heuristicApproval,
  shouldRequireApproval,
} from './plan/heuristics.js'
export {
  type ApprovalPlan,
  type ApprovedCall,
  appendTurn,
  type PlannableCall,
  type PlannedCall,
  type PlanPolicy,
  planApprovals,
  plannedCalls,
  type RejectedCall,
  type Verdict,
} from './plan/plan.js'
export {
  planFromMap,
  readVerdictMap,
  resumeFromMap,
  type VerdictEntry,
  type VerdictMap,
} from './plan/plan-from-map.js'
export {
  type AskedCall,
  type DecidedCall,
  type LivePlan,
  type LivePlanOptions,
  planFromQueue,
} from './plan/plan-from-queue.js'
export { type RunnablePlan, type RunPlanOptions, runPlan } from './plan/run-plan.js'
