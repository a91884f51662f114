import type { AGUIEvent } from '@countersign/core'

/** What a tool reports while it runs; the application's own. */
export function progressEvent(toolCallId: string, toolName: string, data: unknown): AGUIEvent {
  return { type: 'CUSTOM', name: 'tool-progress', value: { toolCallId, toolName, data: data ?? null } }
}
