export const mutants: readonly {
  readonly name: string
  /** The model that notices. */
  readonly by: string
  readonly edits: readonly { readonly file: string; readonly find: string; readonly put: string }[]
}[]
