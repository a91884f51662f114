// An application's lock file. What is committed names our packages by version alone, as npm will have them, and no address that a package
// came from. What is installed here has the packed packages in their place.

/** The manifest, with each of our packages that it needs, directly or not, taken from its tarball. `tarballs`: files by package name. */
export function withTarballs(manifest, tarballs) {
  const { dependencies, devDependencies } = manifest
  const packed = [...tarballs].map(([name, file]) => [name, `file:${file}`])
  const others = Object.entries(devDependencies ?? {}).filter(([name]) => !tarballs.has(name))
  return {
    ...manifest,
    dependencies: { ...dependencies, ...Object.fromEntries(packed) },
    devDependencies: Object.fromEntries(others),
  }
}

/** The lock file that fits `withTarballs`. */
export function lockWithTarballs(lock, manifest, tarballs) {
  const { dependencies, devDependencies } = withTarballs(manifest, tarballs)
  const packages = { ...lock.packages, '': { ...lock.packages[''], dependencies, devDependencies } }
  for (const [name, file] of tarballs) {
    const entry = packages[`node_modules/${name}`]
    if (entry === undefined) throw new Error(`The lock file has no ${name}: write it with --lock.`)
    packages[`node_modules/${name}`] = { ...entry, resolved: `file:${file}` }
  }
  return { ...lock, packages }
}

/** A lock file that npm has written for `withTarballs`, as it is committed. */
export function committedLock(lock, manifest, tarballs) {
  const { dependencies, devDependencies } = manifest
  const packages = Object.entries(lock.packages).map(([place, entry]) => {
    if (place === '') return [place, { ...entry, dependencies, devDependencies }]
    const { resolved, funding, deprecated, ...kept } = entry
    if (!tarballs.has(place.replace('node_modules/', ''))) return [place, kept]
    // of a package as it was built here; what npm has may be packed by another version of the tools
    const { integrity, ...ours } = kept
    return [place, ours]
  })
  return { ...lock, packages: Object.fromEntries(packages) }
}
