/** What is served for one request. */
export interface Recording {
  readonly body: Buffer | AsyncIterable<Buffer | string>
  readonly status?: number
  readonly contentType?: string
  readonly writeSize?: number
  readonly ending?: 'clean' | 'destroyed'
}

export interface RecordingServer {
  readonly origin: string
  readonly requests: readonly { readonly url: string; readonly body: unknown }[]
  close(): Promise<void>
}

export function serveRecording(recording: Recording): Promise<RecordingServer>
export function serveRecordings(recordings: readonly Recording[]): Promise<RecordingServer>
