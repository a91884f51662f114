import type { AnyServerTool } from '@countersign/core'
import { anything } from './schema.js'

/**
 * What stands for a tool where the model's provider runs the call itself (MCP inside the provider): nothing of ours describes it,
 * its arguments are taken as they are, and it never runs here, even if a tool of ours has the same name.
 */
export interface ProviderTool extends Omit<AnyServerTool, 'location' | 'execute'> {
  readonly location: 'provider'
}

export function providerTool(name: string): ProviderTool {
  return { name, description: '', input: anything, location: 'provider' }
}

/**
 * A tool's name as tokens bind it. That of a provider's call is one that no tool of ours can have: a call for the provider cannot be
 * passed off as one of ours, nor the other way round.
 */
export function boundName(name: string, providerExecuted: boolean): string {
  return providerExecuted ? `client.provider:${name}` : name
}
