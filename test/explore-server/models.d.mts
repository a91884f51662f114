export interface Model {
  readonly name: string
}
export const models: readonly Model[]
export const everything: Model
