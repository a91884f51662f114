import { loadFullProtocol } from '@countersign/core'

// In development a client reads a plain chat before the strict reader has come. Here it is there from the start, so that no test depends on when.
await loadFullProtocol()
