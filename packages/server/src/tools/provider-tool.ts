import type { AnyServerTool } from '@countersign/core'
import { anything } from './schema.js'

/**
 * Represents a tool whose calls the model's provider runs itself (MCP inside the provider): it has no description here, its
 * arguments are taken as they are, and it never runs here, even if one of our tools has the same name.
 */
export interface ProviderTool extends Omit<AnyServerTool, 'location' | 'execute'> {
  readonly location: 'provider'
}

export function providerTool(name: string): ProviderTool {
  return { name, description: '', input: anything, location: 'provider' }
}

/**
 * A tool's name as bound in tokens. For a provider's call, it is a name that none of our tools can have: a provider's call can't be
 * passed off as one of ours, nor the other way round.
 */
export function boundName(name: string, providerExecuted: boolean): string {
  return providerExecuted ? `client.provider:${name}` : name
}
