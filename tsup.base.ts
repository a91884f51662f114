import type { Options } from 'tsup'

/** How every published package is built: ESM and CJS with their types. Each package adds its `entry`. */
export const base: Options = {
  format: ['esm', 'cjs'],
  target: 'es2022',
  treeshake: true,
  clean: true,
  // tsup sets `baseUrl`, which TypeScript 6 refuses unless told otherwise
  dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
}

/** Builds dependencies that offer no CommonJS into the CJS files; the ES modules go on importing them. */
export function inlinedInCjs(...dependencies: string[]): Options {
  return {
    noExternal: dependencies,
    esbuildOptions(options, { format }) {
      if (format === 'esm') options.external = [...(options.external ?? []), ...dependencies]
    },
  }
}
