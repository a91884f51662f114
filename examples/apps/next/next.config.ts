import type { NextConfig } from 'next'

const config: NextConfig = {
  cacheComponents: true,
  partialPrefetching: true,
  // a native module, which is not bundled
  serverExternalPackages: ['@photostructure/sqlite'],
}

export default config
