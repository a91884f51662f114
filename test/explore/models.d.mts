import type { Model } from './lib/index.js'

export const everything: readonly Model[]
export const brief: readonly Model[]
export function randomModel(random: () => number): Model
