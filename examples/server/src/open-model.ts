import type { Model } from '@countersign/server'
import type { ModelChoice } from './model-choice.js'
import { demoPlanner } from './planner.js'

/** The chosen model. `delay` is the planner's pause between two words in milliseconds. Each SDK is loaded only when used. */
export async function openModel(choice: ModelChoice, delay?: number): Promise<Model> {
  switch (choice.kind) {
    case 'planner':
      return demoPlanner(delay === undefined ? {} : { delay })
    case 'openai': {
      const { openai } = await import('@countersign/openai')
      return openai({ model: choice.model, apiKey: choice.apiKey })
    }
    case 'compatible': {
      const { openai } = await import('@countersign/openai')
      const { baseURL, model, apiKey = 'none' } = choice
      return openai({ api: 'chat', provider: new URL(baseURL).host, baseURL, apiKey, model })
    }
    case 'anthropic': {
      const { anthropic } = await import('@countersign/anthropic')
      return anthropic({ model: choice.model, apiKey: choice.apiKey })
    }
    case 'gemini': {
      const { google } = await import('@countersign/google')
      return google({ model: choice.model, apiKey: choice.apiKey })
    }
    default:
      return choice satisfies never
  }
}
