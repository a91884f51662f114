export interface RedisServer {
  readonly url: string
  /** Ends it at once; what it did not keep is lost. */
  kill(): Promise<void>
  /** Starts it again on the same port. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export function findRedisServer(): string | undefined
export function startRedis(
  command: string,
  options?: { keep?: boolean; cluster?: boolean },
): Promise<RedisServer>
export function redisForTests(
  untested: string,
): Promise<{ readonly url: string; stop(): Promise<void> } | undefined>
