import { loadFullProtocol } from '../packages/core/src/stream-reader.js'

// In development a client reads a plain chat before the strict reader has come. Here it is there from the start, so that no test depends on when.
await loadFullProtocol()
