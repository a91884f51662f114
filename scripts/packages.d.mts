/** A published package: its folder below `packages/`, and its package.json. */
export interface OurPackage {
  readonly name: string
  readonly folder: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever a package.json has
  readonly manifest: any
}

export const packages: readonly OurPackage[]
