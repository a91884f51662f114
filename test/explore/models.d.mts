import type { Model } from '@countersign/testing'

export const everything: readonly Model[]
export const brief: readonly Model[]
export function randomModel(random: () => number): Model
